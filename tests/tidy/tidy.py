#!/usr/bin/env python3
"""Style as a test: prints every place that breaks a rule and ends with 1 if there is any.

Rules: lines of at most 100 characters; functions of at most 70 lines; files of at most 500;
no leftover words; no tabs or trailing blanks; each C++ source named by a CMakeLists.txt and each
header included by somebody; a comment at the top of each header; a folder's map of its files, where
its README.md has one, names all of them and no others; links between pages lead somewhere, and
docs/README.md names each page of its folder once; no circle of includes beyond its folder's limit
(cycles.py); code that runs in programs which are not ours makes descriptors by wire/descriptors.h
alone, and our processes begin with having three; what may run setuid reads variables by
base/environment.h alone; tests read a program's lines without reading ahead; facts of calls stand
in their descriptions; no folder has more retired words than words_left.txt says (words.py); the
code of calls has the description's names (call_files.py); no folder of the product has more than
25 files (folder_sizes.py).
"""
import collections
import argparse
import pathlib
import re
import subprocess
import sys

import call_files
import cycles
import facts
import folder_sizes
import words

MAX_COLUMNS = 100
MAX_FUNCTION_LINES = 70
MAX_FILE_LINES = 500
LEFTOVER_WORDS = ["TO" + "DO", "FIX" + "ME", "X" * 3, "HA" + "CK"]
LEFTOVERS = re.compile(r"\b(" + "|".join(LEFTOVER_WORDS) + r")\b")
C_SUFFIXES = {".cc", ".h", ".cu"}
TEXT_SUFFIXES = C_SUFFIXES | {".py", ".sh", ".cmake", ".proto", ".txt", ".md", ".yaml", ".yml"}
# Generated text that is kept as it came.
EXEMPT_FOLDERS = ("golden", "results", "testdata")
# Words that begin a block that is not a function.
NOT_A_FUNCTION = re.compile(
    r"^\s*(namespace|extern\s+\"C\"|class|struct|union|enum|typedef)\b|^\s*(static\s+)?(inline\s+)?"
    r"(constexpr|const)\b[^(]*=\s*\{|=\s*\{$")

# What runs in the user's programs, and what makes descriptors there.
IN_PROGRAMS = ("base", "client-shim", "nvml-shim", "wire")
MAKES_DESCRIPTORS = {"wire/descriptors.cc", "wire/socket.cc", "wire/descriptor_table.cc",
                     "client-shim/support/user_faults.cc",
                     "wire/standard_descriptors.cc"}
DESCRIPTOR_CALL = re.compile(
    r"(?<![\w.>])(?:std::|::)?(memfd_create|memfd_secret|socket|socketpair|accept4?|pipe2?|eventfd|"
    r"timerfd_create|signalfd|epoll_create1?|inotify_init1?|fanotify_init|userfaultfd|recvmsg|"
    r"recvmmsg|open|open64|openat|creat|fopen|fopen64|freopen|opendir|scandir|tmpfile|"
    r"mkstemp|mkostemp|shm_open|dup[23]?|popen|syslog|openlog|perf_event_open)\s*\("
    r"|\b(F_DUPFD(?:_CLOEXEC)?|SYS_(?:pidfd_\w+|openat2?|memfd_\w+|perf_event_open|userfaultfd))\b"
    r"|\bstd::(o?i?fstream|filebuf|random_device|filesystem)\b")
MAIN = re.compile(r"^int [Mm]ain\([^)]*\) \{\n(.*)", re.MULTILINE)
# In a test; iterating also reads ahead, but who does that reads to the end.
READS_AHEAD = re.compile(r"\bstdout\.readline\b")
# Programs that are installed; the others are ours to start.
INSTALLED = ("cli", "link", "server")


def list_files(root):
    """Files that git knows or would add, so that a fault shows before it is committed."""
    names = subprocess.run(
        ["git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard"],
        check=True, capture_output=True, text=True).stdout.split("\n")
    paths = {pathlib.Path(name) for name in names if name}
    return sorted(path for path in paths if (root / path).is_file())


def is_exempt(path):
    return any(part in EXEMPT_FOLDERS for part in path.parts)


def check_lines(path, lines):
    """Yields faults that one line alone shows."""
    for number, line in enumerate(lines, 1):
        if len(line) > MAX_COLUMNS and path.suffix != ".md" and "http" not in line:
            yield number, f"{len(line)} characters, {MAX_COLUMNS} are allowed"
        if LEFTOVERS.search(line):
            yield number, "a leftover word: " + LEFTOVERS.search(line).group()
        if line != line.rstrip() and path.suffix != ".md":
            yield number, "blanks at the end"
        if "\t" in line and path.suffix in C_SUFFIXES | {".py"}:
            yield number, "a tab"


def blank_literals(text):
    """The text with comments and literals replaced by blanks, lines kept, so braces count."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match.group())
    pattern = (r'R"([^(\s]*)\(.*?\)\1"' r"|//[^\n]*" r"|/\*.*?\*/" r'|"(?:\\.|[^"\\\n])*"'
               r"|(?<![0-9A-Za-z_])'(?:\\.|[^'\\\n])+'")
    return re.sub(pattern, blank, text, flags=re.DOTALL)


def find_functions(text):
    """Yields (first line, lines) of each outermost block that is a function's body.

    A block counts as a function when what stands before its brace, since the last ; { or },
    has a parameter list and does not begin a namespace or a type.
    """
    code = blank_literals(text)
    code = re.sub(r"(?m)^[ \t]*#(?:.*\\\n)*.*$", lambda m: re.sub(r"[^\n]", " ", m.group()), code)
    stack = []
    head_start = 0
    inside = 0
    for position, character in enumerate(code):
        if character == "{":
            head = code[head_start:position].strip()
            is_function = inside == 0 and "(" in head and not NOT_A_FUNCTION.search(
                re.sub(r"^template\s*<[^{}]*>\s*", "", head))
            first = code.count("\n", 0, code.find(head, head_start) if head else position) + 1
            stack.append((is_function, first))
            inside += is_function
            head_start = position + 1
        elif character == "}" and stack:
            is_function, first = stack.pop()
            if is_function:
                inside -= 1
                yield first, code.count("\n", 0, position) + 1 - first + 1
            head_start = position + 1
        elif character == ";":
            head_start = position + 1


def check_file(root, path):
    text = (root / path).read_text(encoding="utf-8", errors="replace")
    lines = text.split("\n")
    if lines and lines[-1] == "":
        lines.pop()
    for number, fault in check_lines(path, lines):
        yield f"{path}:{number}: {fault}"
    if len(lines) > MAX_FILE_LINES and path.suffix in C_SUFFIXES | {".py"}:
        yield f"{path}:1: {len(lines)} lines, {MAX_FILE_LINES} are allowed"
    if path.suffix in C_SUFFIXES:
        for first, count in find_functions(text):
            if count > MAX_FUNCTION_LINES:
                yield (f"{path}:{first}: a function of {count} lines, "
                       f"{MAX_FUNCTION_LINES} are allowed")
    if path.suffix == ".h" and not text.lstrip().startswith(("//", "/*")):
        yield f"{path}:1: no comment at the top says what the header is for"


def names_source(cmake_text, relative):
    """Whether a CMakeLists.txt names the file: by its name without suffix, by a glob, or with the
    variable of a loop (${part}_test.cc) over words that stand there too."""
    pattern = (str(relative.parent) + "/" if relative.parent.parts else "") + "*" + relative.suffix
    if pattern in cmake_text:
        return True
    for token in set(re.findall(r"[\w./-]*\$\{\w+\}[\w./-]*\.\w+", cmake_text)):
        match = re.fullmatch(re.sub(r"\\\$\\\{\w+\\\}", r"(\\w+)", re.escape(token)), str(relative))
        if match and all(re.search(rf"\b{word}\b", cmake_text) for word in match.groups()):
            return True
    stem = re.escape(str(relative.with_suffix("")))
    return re.search(r"(?<![\w-])" + stem + r"(\.\w+)?(?![\w-])", cmake_text) is not None


def find_dead_files(root, paths):
    """Yields C++ sources that no CMakeLists.txt names and headers that nobody includes."""
    cmake_lists = collections.defaultdict(str)  # by folder
    for path in paths:
        if path.name == "CMakeLists.txt" or path.suffix == ".cmake":
            cmake_lists[path.parent] += (root / path).read_text()
    all_code = "\n".join((root / path).read_text(errors="replace") for path in paths
                         if path.suffix in C_SUFFIXES or path.name == "CMakeLists.txt")
    for path in paths:
        if is_exempt(path) or path.suffix not in C_SUFFIXES:
            continue
        if path.suffix == ".h":
            if not re.search(r"[\"</]" + re.escape(path.name) + r"[\">]", all_code):
                yield f"{path}:1: nobody includes this header"
            continue
        if not any(names_source(text, path.relative_to(folder))
                   for folder in [path.parent, *path.parent.parents]
                   if (text := cmake_lists.get(folder))):
            yield f"{path}:1: no CMakeLists.txt names this source"


def check_maps(root, paths):
    """Yields what the maps of folders leave out and what they name that is not there. A map whose
    rows begin with folders is of their files, too."""
    for readme in [path for path in paths if path.name == "README.md"]:
        text = (root / readme).read_text()
        if "| about | files |" not in text:
            continue
        named = set(re.findall(r"`(\w+)`", text))
        # A line may begin with a folder below; where it names files of that, all of them.
        rows = re.findall(r"^\| `([\w/]+)/`(.*)", text, re.MULTILINE)
        folders = {readme.parent, *(readme.parent / name for name, rest in rows
                                    if re.search(r"`\w+`", rest))}
        there = {path.stem for path in paths if path.parent in folders
                 and path.suffix in C_SUFFIXES and not path.stem.endswith("_test")}
        for name in sorted(there ^ named):
            yield f"{readme}:1: {'does not name' if name in there else 'names no file by'} {name}"


def prose_of(path):
    """A page without its examples, lines kept."""
    return re.sub(r"```.*?```", lambda match: "\n" * match.group().count("\n"), path.read_text(),
                  flags=re.DOTALL)


def anchors_of(path):
    """What a link may name behind a #: headings as GitHub writes them."""
    return {re.sub(r"[^\w -]", "", heading.strip().lower()).replace(" ", "-")
            for heading in re.findall(r"^#+ (.*)", prose_of(path), re.MULTILINE)}


def check_links(root, paths):
    """Yields links to files or headings that are not there, and what the index does not name."""
    for page in [path for path in paths if path.suffix == ".md"]:
        text = prose_of(root / page)
        for match in re.finditer(r"\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]+))?\)", text):
            target = root / page.parent / match[1] if match[1] else root / page
            if not target.exists() or (match[2] and match[2] not in anchors_of(target)):
                number = text.count("\n", 0, match.start()) + 1
                yield f"{page}:{number}: a link leads nowhere: {match[0][2:-1]}"
    index = root / "docs" / "README.md"
    for page in [path for path in paths if path.parent == pathlib.Path("docs")]:
        if page.suffix == ".md" and page.name != "README.md" and index.exists():
            if (count := index.read_text().count(f"]({page.name})")) != 1:
                yield f"docs/README.md:1: names {page.name} {count} times"


def check_format(root, paths):
    """Yields files that clang-format would change."""
    sources = [str(path) for path in paths if path.suffix in C_SUFFIXES and not is_exempt(path)]
    result = subprocess.run(["clang-format-14", "--dry-run", *sources], cwd=root,
                            capture_output=True, text=True)
    for name in sorted(set(re.findall(r"^(\S+?):\d+:\d+: warning: code should be clang-formatted",
                                      result.stderr, re.MULTILINE))):
        yield f"{name}:1: not as clang-format writes it (./dev format)"


def check_descriptors(path, text):
    """Yields where a descriptor is made that may become one of the standard three."""
    if path.suffix not in {".cc", ".h"} or path.stem.endswith("_test"):
        return
    if path.parts[0] in IN_PROGRAMS and str(path) not in MAKES_DESCRIPTORS:
        code = blank_literals(text)
        for match in DESCRIPTOR_CALL.finditer(code):
            # A declaration has a type before the name.
            before = code[code.rfind("\n", 0, match.start()) + 1:match.start()].strip()
            if re.fullmatch(r"(?:[\w:]+ )*(?:int|bool|void|auto)", before):
                continue
            name = next(group for group in match.groups() if group)
            yield (f"{path}:{code.count(chr(10), 0, match.start()) + 1}: {name} may make a "
                   "standard descriptor: see wire/descriptors.h")
    if path.parts[0] in INSTALLED:
        for match in MAIN.finditer(text):
            first = match.group(1).strip()
            if not first.endswith("OpenStandardDescriptors();"):
                yield (f"{path}:{text.count(chr(10), 0, match.start()) + 1}: does not begin with "
                       "OpenStandardDescriptors")


def check_environment(path, text):
    """Yields where a variable is read that a program with more rights must not believe."""
    if path.suffix not in {".cc", ".h"} or path.stem.endswith("_test"):
        return
    if path.parts[0] in (*IN_PROGRAMS, "cli", "link") and str(path) != "base/environment.h":
        code = blank_literals(text)
        for match in re.finditer(r"\b(secure_)?getenv\s*\(", code):
            line = code.count("\n", 0, match.start()) + 1
            yield f"{path}:{line}: a variable is read without base/environment.h"


def check_facts(path, text):
    """Yields facts of calls that are not in the description. Tests may name the calls they make."""
    if path.stem.endswith("_test") or path.parts[0] == "tests":
        return
    for line, fault in facts.find_facts(blank_literals(text)):
        yield f"{path}:{line}: {fault}: make it an option of the description (proto/README.md)"


def check_reading(path, text):
    """Yields where a test may lose what a program says: what readline() reads ahead is kept from
    communicate()."""
    if path.parts[0] != "tests" or path.suffix != ".py":
        return
    for number, line in enumerate(text.splitlines(), 1):
        if READS_AHEAD.search(line):
            yield f"{path}:{number}: reads ahead: use next_line of tests/e2e/server.py"


def check_tree(root, with_format=False):
    paths = list_files(root)
    faults = []
    for path in paths:
        named_like_text = path.suffix in TEXT_SUFFIXES or path.name == "dev"
        if named_like_text and not is_exempt(path):
            faults += check_file(root, path)
        if path.suffix == ".py":
            faults += check_reading(path, (root / path).read_text())
        if path.suffix in C_SUFFIXES:
            text = (root / path).read_text(errors="replace")
            faults += check_descriptors(path, text)
            faults += check_environment(path, text)
            faults += [] if is_exempt(path) else check_facts(path, text)
    faults += find_dead_files(root, paths)
    faults += check_maps(root, paths)
    faults += cycles.check_cycles(root, paths)
    faults += call_files.check_call_files(root, paths)
    faults += folder_sizes.check_sizes(paths)
    faults += check_links(root, paths)
    faults += words.check_words(root, paths)
    if with_format:
        faults += check_format(root, paths)
    return faults


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path.cwd())
    parser.add_argument("--format", action="store_true", help="also ask clang-format")
    arguments = parser.parse_args()
    faults = check_tree(arguments.root, arguments.format)
    for fault in faults:
        print(fault)
    print(f"{len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
