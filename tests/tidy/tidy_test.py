"""Plants each kind of fault in a small tree and expects exactly that fault to be found."""
import pathlib
import subprocess
import tempfile
import unittest
import unittest.mock

import call_files
import cycles
import folder_sizes
import includes
import retired
import room_map
import tidy
import words

GOOD_SOURCE = '#include "part.h"\n\nint Twice(int value) {\n  return value * 2;\n}\n'
GOOD_HEADER = "// Doubling.\n#pragma once\n\nint Twice(int value);\n"


class TidyTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name)
        subprocess.run(["git", "init", "-q", self.root], check=True)
        self.word_limits = self.root / ".git" / "words_left.txt"
        self.word_limits.write_text("")
        self.enterContext(unittest.mock.patch.object(words, "LIMITS_FILE", self.word_limits))
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

    def test_variables_in_programs(self):
        for read in ('getenv("HOME")', 'std::getenv("HOME")', 'secure_getenv("HOME")'):
            self.write("wire/CMakeLists.txt", "add_library(read read.cc)\n")
            self.write("wire/read.cc", "\nconst char* Home() {\n  return %s;\n}\n" % read)
            self.expect("wire/read.cc:3", "without base/environment.h")
        self.write("wire/read.cc", '\nint x = setenv("a", "b", 1);\n')
        self.assertEqual([], tidy.check_tree(self.root))

    def test_lines_of_programs_in_tests(self):
        self.write("tests/any_test.py", "said = process.std" "out.readline()\n")
        self.expect("tests/any_test.py:1", "next_line")
        self.write("tests/any_test.py", "said = server.next_line(process)\n")
        self.assertEqual([], tidy.check_tree(self.root))

    def test_processes_have_the_standard_descriptors(self):
        self.write("cli/CMakeLists.txt", "add_executable(x main.cc)\n")
        main = "int main(int count, char** words) {\n%s  return Twice(count);\n}\n"
        self.write("cli/main.cc", main % "  longwire::wire::OpenStandardDescriptors();\n")
        self.assertEqual([], tidy.check_tree(self.root))
        self.write("cli/main.cc", main % "")
        self.expect("cli/main.cc:1", "does not begin with OpenStandardDescriptors")

    def test_facts_of_calls_stand_in_descriptions(self):
        switch = ("\nint Fact(CallId id) {\n  switch (id) {\n    case CallId::lwMap:  // one\n"
                  "    case wire::CallId::lwUnmap:\n      return %s;\n    default:\n"
                  "      return %s;\n  }\n}\n")
        for values in (("true", "false"), ("1", "-1"), ("Helpers::kLinker", "Helpers::kNone"),
                       ("Until::kIssued", "0")):
            self.write("part.cc", GOOD_SOURCE + switch % values)
            self.expect("part.cc:8: a switch over calls that only returns constants")
        for values in (("Map(id)", "0"), ("id == other", "true"), ("map.size()", "0")):
            self.write("part.cc", GOOD_SOURCE + switch % values)
            self.assertEqual([], tidy.check_tree(self.root))
        self.write("part.cc", GOOD_SOURCE + (switch % ("1", "2")).replace("CallId::", "Color::"))
        self.assertEqual([], tidy.check_tree(self.root))

    def test_one_case_that_does_something_makes_no_fact(self):
        self.write("part.cc", GOOD_SOURCE + "\nbool Take(Call& call) {\n  switch (call.id) {\n"
                   "    case CallId::lwMap:\n      return true;\n    case CallId::lwUnmap: {\n"
                   "      Decode(call);\n      return false;\n    }\n  }\n}\n")
        self.assertEqual([], tidy.check_tree(self.root))

    def test_lists_of_calls(self):
        for made in ("constexpr CallId kSome[] = {CallId::lwMap};",
                     "constexpr std::array<CallId, 1> kSome = {CallId::lwMap};"):
            self.write("part.cc", GOOD_SOURCE + "\n" + made + "\n")
            self.expect("part.cc:7: a list of calls")
        self.write("CMakeLists.txt", "add_library(part part.cc part_test.cc)\n")
        self.write("part.cc", GOOD_SOURCE)
        self.write("part_test.cc", "const CallId calls[] = {CallId::lwMap};\n")
        self.assertEqual([], tidy.check_tree(self.root))

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

    def write_circle(self, folder, count):
        """Units of which each includes the next: every second one in its header."""
        names = [f"unit{number}" for number in range(count)]
        for name, following in zip(names, names[1:] + names[:1]):
            include = f'#include "{folder}/{following}.h"\n'
            header = int(name[4:]) % 2 == 0
            self.write(f"{folder}/{name}.h", "// A unit.\n" + include * header)
            self.write(f"{folder}/{name}.cc", f'#include "{folder}/{name}.h"\n'
                       + include * (not header))
        self.write(f"{folder}/CMakeLists.txt", f"add_library({folder} {' '.join(names)})\n")

    def test_a_circle_of_includes(self):
        self.write_circle("room", 3)
        self.expect("room/unit0.h:2", "3 files include one another", "1 are allowed in room",
                    "room/unit0 room/unit1 room/unit2",
                    "Without room/unit0 -> room/unit1 none would be left")

    def test_a_circle_through_two_folders(self):
        self.write_circle("room", 2)
        self.write("room/unit1.cc", '#include "room/unit1.h"\n#include "part.h"\n')
        self.write("part.cc", GOOD_SOURCE + '#include "room/unit0.h"\n')
        self.expect("3 files include one another", "in all folders together")

    def test_a_circle_within_its_folders_limit(self):
        with unittest.mock.patch.dict(cycles.LIMITS, {"room": 3}):
            self.write_circle("room", 3)
            self.assertEqual([], tidy.check_tree(self.root))
            self.write_circle("room", 4)
            self.expect("4 files include one another", "3 are allowed in room")

    def test_the_cut_that_leaves_least(self):
        # Two circles that share the edge from b to a.
        self.write("CMakeLists.txt", "add_library(part part a b c d)\n")
        for name, included in (("a", "cd"), ("b", "a"), ("c", "b"), ("d", "b")):
            self.write(f"{name}.h", "// A unit.\n"
                       + "".join(f'#include "{other}.h"\n' for other in included))
        self.expect("b.h:2", "4 files", "Without b -> a none would be left")

    def boxes_of(self, **folders):
        """The map's boxes by name, of folders with one header each that includes others'."""
        for folder, included in folders.items():
            self.write(f"{folder}/{folder}.h", "// A unit.\n"
                       + "".join(f'#include "{other}/{other}.h"\n' for other in included))
        edges = includes.find_edges(self.root, tidy.list_files(self.root))
        boxes = room_map.make_boxes(includes.between_rooms(edges))
        return {" ".join(box.names): box for box in boxes}

    def test_the_map_has_each_folder_above_what_it_includes(self):
        boxes = self.boxes_of(low=[], middle=["low"], top=["low", "middle"])
        self.assertEqual([0, 1, 2], [boxes[name].layer for name in ("low", "middle", "top")])
        room_map.place(list(boxes.values()))
        self.assertGreater(boxes["low"].y, boxes["middle"].y)
        # The line from top to low would say nothing that the other two do not.
        self.assertEqual(1, len(list(room_map.lines_of(boxes["top"]))))

    def test_the_map_has_one_box_for_a_circle_of_folders(self):
        boxes = self.boxes_of(one=["two"], two=["one"], top=["one"])
        self.assertEqual(1, boxes["top"].layer)
        self.assertIn(boxes["one two"], boxes["top"].below)

    def test_links_lead_somewhere(self):
        self.write("docs/one.md", "# One `way`, or two\n[here](#one-way-or-two) [it](../part.h)\n")
        self.write("docs/README.md", "[1](one.md) [2](one.md#one-way-or-two) [far](http://x/y)\n"
                   "```\n[example](gone.md)\n```\n")
        self.assertEqual([], tidy.check_tree(self.root))
        self.write("docs/two.md", "[gone](gone.md)\n")
        self.write("docs/README.md", "[one](one.md) [two](two.md)\n")
        self.expect("docs/two.md:1", "gone.md")
        self.write("docs/two.md", "\n[no heading](one.md#three)\n")
        self.expect("docs/two.md:2", "one.md#three")
        self.write("docs/two.md", "")
        self.write("docs/README.md", "[one](one.md)\n")
        self.expect("docs/README.md:1", "two.md 0 times")

    def test_retired_words(self):
        for text in ('// One call is kept back.\n', '// What a kept\n  // call is about.\n',
                     'constexpr int kMostSlots = 4;\n', 'Knock(1);\n',
                     'Log("nobody " "is told");\n', "// The device's like of it.\n"):
            self.write("part.cc", GOOD_SOURCE + text)
            self.expect(".: 1 retired words, 0 are allowed", "part.cc:6: ", "is retired")
        self.write("part.cc", GOOD_SOURCE)
        for text in ("It says so many things.\n", "Whose books\nare kept?\n"):
            self.write("docs/README.md", text)
            self.expect("docs: 1 retired words", "docs/README.md:1: ")

    def test_words_that_are_not_retired(self):
        self.write("part.cc", GOOD_SOURCE + '#include "part.h"\n// `kMost` kept\nint a;  // call\n'
                   '// They look at it as we do, told apart like the device.\n'
                   'int key(const char* = "door", const char* = "--door=/x");\n')
        self.write("docs/README.md", "The key `door`\n```\nso many\n```\n[x](../part.h)\n")
        self.write("CHANGELOG.md", "So many doors.\n")
        self.write("testdata/any.txt", "# So many doors.\n")
        self.assertEqual([], tidy.check_tree(self.root))

    def test_retired_words_within_the_limit(self):
        self.write("part.cc", GOOD_SOURCE + "// So many doors.\n")
        self.word_limits.write_text("# Why.\n. 2\n")
        self.assertEqual([], tidy.check_tree(self.root))
        self.word_limits.write_text("# Why.\n. 1\n")
        self.expect(".: 2 retired words, 1 are allowed")

    def test_limits_of_retired_words_only_shrink(self):
        self.word_limits.write_text("# Why.\n. 3\ndocs 1\ngone 2\n")
        self.write("part.cc", GOOD_SOURCE + "// So many doors.\n")
        self.write("docs/one.md", "So many doors.\n")
        words.shrink(self.root, tidy.list_files(self.root))
        self.assertEqual("# Why.\n. 2\ndocs 1\n", self.word_limits.read_text())

    def test_the_glossary_has_the_retired_words(self):
        table = "# Words\n" + words.HEADING + "\n\n| retired | instead |\n| --- | --- |\n"
        names = list(retired.PROSE)
        rows = [f"| {name} | other |\n" for name in names]
        self.write("docs/README.md", "[words](glossary.md)\n")
        self.write("docs/glossary.md", table + "".join(rows))
        self.assertEqual([], tidy.check_tree(self.root))
        self.write("docs/glossary.md", table + "".join(rows[1:]))
        self.expect("docs/glossary.md:1", "does not have the retired word " + names[0])
        self.write("docs/glossary.md", table + "".join(rows) + "| thing | other |\n")
        self.expect("tests/tidy/retired.py:1", "does not have the retired word thing")

    def write_calls(self, *files):
        """A description of two calls, and sources with a function in each."""
        self.write("proto/calls/memory/memory.proto", "message cuMemAlloc {\n}\n")
        self.write("proto/calls/memory/vmm.proto", "message cuMemMap {\n}\n")
        for name, body in files:
            self.write(name, f"CUresult {body}() {{ return 0; }}\n")
        self.write("CMakeLists.txt", "add_library(part part.cc)\n"
                   + "".join(f"# {name}\n" for name, _ in files))

    def test_code_of_calls_has_the_names_of_the_description(self):
        ends = ("client-shim/calls/", "server/worker/calls/")
        self.write_calls(*((end + name, "Help") for end in ends for name in (
            "memory/memory.cc", "memory/vmm_more.cc", "memory/memory_more.cc",
            "memory/memory_map_test.cc", "memory/maps.cc")))
        self.assertEqual([f"{end}memory/maps.cc:1: no file of proto/calls has this name, or its "
                          "beginning" for end in ends], tidy.check_tree(self.root))
        shared = {end + "memory/maps" for end in ends}
        with unittest.mock.patch.object(call_files, "SHARED", shared):
            self.assertEqual([], tidy.check_tree(self.root))

    def test_code_of_calls_has_the_folders_of_the_description(self):
        self.write_calls(("client-shim/calls/memory.cc", "cuMemAlloc"))
        self.assertEqual(2, len(tidy.check_tree(self.root)))  # the name, and the body in it

    def test_a_call_stands_in_the_file_of_its_chapter(self):
        self.write_calls(("client-shim/calls/memory/vmm.cc", "cuMemMap"))
        self.assertEqual([], tidy.check_tree(self.root))
        self.write_calls(("client-shim/calls/memory/vmm.cc", "cuMemAlloc"))
        self.expect("client-shim/calls/memory/vmm.cc:1: cuMemAlloc is described in "
                    "proto/calls/memory/memory.proto")

    def test_files_of_a_folder(self):
        def write(folder, count):
            for number in range(count):
                self.write(f"{folder}/unit{number}.py", "")
        write("bench", 26)  # a folder of tools
        write("wire/deep", 25)
        self.write("wire/deep/one_test.py", "")
        self.write("wire/deep/unit1.h", '// Unit.\n#include "wire/deep/unit1.h"\n')
        self.assertEqual([], tidy.check_tree(self.root))
        write("wire/deep", 26)
        self.expect("wire/deep: 26 files, 25 are allowed")
        with unittest.mock.patch.dict(folder_sizes.LIMITS, {"wire/deep": 26}):
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
