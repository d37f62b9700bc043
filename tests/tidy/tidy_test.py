"""Plants each kind of fault in a small tree and expects exactly that fault to be found."""
import pathlib
import subprocess
import tempfile
import unittest

import tidy

GOOD_SOURCE = '#include "part.h"\n\nint Twice(int value) {\n  return value * 2;\n}\n'
GOOD_HEADER = "// Doubling.\n#pragma once\n\nint Twice(int value);\n"


class TidyTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name)
        subprocess.run(["git", "init", "-q", self.root], check=True)
        self.write("CMakeLists.txt", "add_library(part part.cc)\n")
        self.write("part.cc", GOOD_SOURCE)
        self.write("part.h", GOOD_HEADER)

    def tearDown(self):
        self.folder.cleanup()

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def expect(self, *parts):
        """Exactly one fault, whose text has all the parts."""
        faults = tidy.check_tree(self.root)
        self.assertEqual(1, len(faults), faults)
        for part in parts:
            self.assertIn(part, faults[0])

    def test_a_clean_tree_has_no_faults(self):
        self.assertEqual([], tidy.check_tree(self.root))

    def test_descriptors_in_programs(self):
        call = "\nint Made(int one) {\n  return %s;\n}\n"
        for made in ('open("/x", 0)', "::memfd_create(0, 0)", "fcntl(one, F_DUPFD, 0)",
                     "syscall(SYS_pidfd_open, one, 0)", "accept4(one, 0, 0, 0)"):
            self.write("part.cc", GOOD_SOURCE + call % made)  # not in a program
            self.write("wire/CMakeLists.txt", "add_library(made made.cc)\n")
            self.write("wire/made.cc", '#include "part.h"\n' + call % made)
            self.expect("wire/made.cc:4", "may make a standard descriptor")
        self.write("wire/made.cc", call % "transfer.open(one) + once->socket(1) + is_open(2)"
                   + "\nint socket() { return 1; }\n")
        self.assertEqual([], tidy.check_tree(self.root))

    def test_processes_have_the_standard_descriptors(self):
        self.write("cli/CMakeLists.txt", "add_executable(x main.cc)\n")
        main = "int main(int count, char** words) {\n%s  return Twice(count);\n}\n"
        self.write("cli/main.cc", main % "  longwire::wire::OpenStandardDescriptors();\n")
        self.assertEqual([], tidy.check_tree(self.root))
        self.write("cli/main.cc", main % "")
        self.expect("cli/main.cc:1", "does not begin with OpenStandardDescriptors")

    def test_long_line(self):
        self.write("part.cc", GOOD_SOURCE + "// " + "x" * 98 + "\n")
        self.expect("part.cc:6", "101 characters")

    def test_line_of_the_allowed_length(self):
        self.write("part.cc", GOOD_SOURCE + "// " + "x" * 97 + "\n")
        self.assertEqual([], tidy.check_tree(self.root))

    def test_long_function(self):
        body = "  Twice(1);\n" * 69
        head = "\nvoid Long(int a,\n          int b) {\n"
        self.write("part.cc", GOOD_SOURCE + head + body + "}\n")
        self.expect("part.cc:7", "a function of 72 lines")

    def test_long_method_in_a_class_in_a_namespace(self):
        body = "    if (a) {\n      Twice(1);\n    }\n" * 23
        self.write("part.cc", GOOD_SOURCE + "namespace n {\nclass C {\n  int Method() const {\n"
                   + body + "  }\n};\n}\n")
        self.expect("part.cc:8", "a function of 71 lines")

    def test_braces_in_literals_and_comments_do_not_count(self):
        body = '  Text("{{{", \'{\'); // {{\n' * 60
        functions = "void A() {\n" + body + "}\nvoid B() {\n" + body + "}\n"
        self.write("part.cc", GOOD_SOURCE + functions)
        self.assertEqual([], tidy.check_tree(self.root))

    def test_long_table_is_no_function(self):
        self.write("part.cc", GOOD_SOURCE + "const int table[] = {\n" + "  1,\n" * 90 + "};\n")
        self.assertEqual([], tidy.check_tree(self.root))

    def test_long_file(self):
        self.write("part.cc", GOOD_SOURCE + "\n" * 496)
        self.expect("part.cc:1", "501 lines")

    def test_leftover_word(self):
        self.write("part.cc", GOOD_SOURCE + "// TO" + "DO: more\n")
        self.expect("part.cc:6", "leftover")

    def test_tab(self):
        self.write("part.cc", GOOD_SOURCE + "\tint x;\n")
        self.expect("part.cc:6", "a tab")

    def test_blank_at_the_end(self):
        self.write("part.cc", GOOD_SOURCE + "int x; \n")
        self.expect("part.cc:6", "blanks at the end")

    def test_dead_source(self):
        self.write("lost.cc", "int lost;\n")
        self.expect("lost.cc:1", "no CMakeLists.txt")

    def test_source_whose_name_only_ends_alike_is_dead(self):
        self.write("art.cc", "int art;\n")
        self.expect("art.cc:1", "no CMakeLists.txt")

    def test_source_in_a_subfolder_named_from_above(self):
        self.write("CMakeLists.txt", "add_library(part part.cc deep/more.cc)\n")
        self.write("deep/more.cc", "int more;\n")
        self.assertEqual([], tidy.check_tree(self.root))

    def test_globbed_sources(self):
        self.write("CMakeLists.txt", "file(GLOB a deep/*.cc)\nadd_library(part part.cc ${a})\n")
        self.write("deep/more.cc", "int more;\n")
        self.assertEqual([], tidy.check_tree(self.root))

    def test_sources_of_a_loop(self):
        loop = "foreach(name one two)\n  add_executable(${name} ${name}_test.cc)\nendforeach()\n"
        self.write("CMakeLists.txt", "add_library(part part.cc)\n" + loop)
        self.write("one_test.cc", "int one;\n")
        self.assertEqual([], tidy.check_tree(self.root))
        self.write("three_test.cc", "int three;\n")
        self.expect("three_test.cc:1", "no CMakeLists.txt")

    def test_dead_header(self):
        self.write("lost.h", "// Lost.\n")
        self.expect("lost.h:1", "nobody includes")

    def test_a_map_names_all_files_and_no_others(self):
        self.write("README.md", "| about | files |\n| --- | --- |\n| all | `part` |\n")
        self.assertEqual([], tidy.check_tree(self.root))
        self.write("README.md", "| about | files |\n| --- | --- |\n| all | `part` `gone` |\n")
        self.expect("README.md:1", "names no file by gone")
        self.write("README.md", "| about | files |\n| --- | --- |\n| all | |\n")
        self.expect("README.md:1", "does not name part")

    def test_a_map_names_the_files_of_folders_that_it_lists(self):
        self.write("CMakeLists.txt", "add_library(part part.cc room/chair.cc)\n")
        self.write("room/chair.cc", "int chair;\n")
        head = "| about | files |\n| --- | --- |\n| all | `part` |\n"
        self.write("README.md", head + "| `room/`: seats | `chair` |\n")
        self.assertEqual([], tidy.check_tree(self.root))
        self.write("README.md", head + "| `room/`: seats | `table` |\n")
        self.assertEqual(["README.md:1: does not name room/chair",
                          "README.md:1: names no file by room/table"],
                         sorted(tidy.check_tree(self.root)))
        self.write("README.md", head + "| `room/`: seats | |\n")
        self.assertEqual([], tidy.check_tree(self.root))

    def test_header_without_a_comment(self):
        self.write("part.h", "#pragma once\nint Twice(int value);\n")
        self.expect("part.h:1", "no comment")

    def test_golden_files_are_left_alone(self):
        self.write("golden/out.cc", "x" * 200 + "\n")
        self.assertEqual([], tidy.check_tree(self.root))

    def test_format(self):
        self.write(".clang-format", "BasedOnStyle: Google\n")
        self.write("part.cc", GOOD_SOURCE.replace("value * 2", "value*2"))
        faults = tidy.check_tree(self.root, with_format=True)
        self.assertEqual(1, len(faults), faults)
        self.assertIn("clang-format", faults[0])


if __name__ == "__main__":
    unittest.main()
