#!/usr/bin/env python3
"""Does what docs/adding-a-call.md says, in a copy of what it touches: writes each block to its
place, numbers the call, generates, compiles what is new or has changed, and looks for the call."""
import argparse
import difflib
import json
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

import page

PUBLIC, PRIVATE = "cuMulticastGetGranularity", "lwMulticastGranularity"
# Every place where a call may need something written.
PLACES = ("proto/calls/", "client-shim/calls/", "server/worker/calls/",
          "softgpu/driver/calls/", "tests/wire_inprocess/", "tests/conformance/")


class Tree:
    """A copy of the files that the page touches, and all that is generated from them."""

    def __init__(self, options):
        self.source, self.build = options.source, options.build
        # Always the same folder, so that a cache of the compiler knows it again.
        self.root = options.build / "adding_a_call"
        self.gen = self.root / "gen"
        shutil.rmtree(self.root, ignore_errors=True)
        for folder in ("proto", "codegen/import"):
            shutil.copytree(self.source / folder, self.root / folder)
        self.gen.mkdir()
        self.launcher = options.launcher.split()
        self.commands = {entry["file"]: shlex.split(entry["command"]) for entry in json.loads(
            (self.build / "compile_commands.json").read_text())}

    def write(self, block):
        there, path = self.source / block.path, self.root / block.path
        if block.is_new == there.exists():
            raise SystemExit(f"{block.path}: " + ("is there" if block.is_new else "is not there"))
        text = path.read_text() if path.exists() else "" if block.is_new else there.read_text()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page.apply(block, text))

    def generate(self, protoc, plugin):
        proto = self.root / "proto"
        subprocess.run(
            [protoc, "-I.", f"--plugin=protoc-gen-longwire={plugin}",
             f"--longwire_out=numbers=wire_numbers.txt:{self.gen}",
             *sorted(str(path.relative_to(proto)) for path in proto.glob("calls/**/*.proto"))],
            check=True, cwd=proto)

    def changed(self):
        """Generated sources that are not what they were."""
        for path in sorted((self.gen / "longwire").glob("*.cc")):
            before = self.build / "gen" / "longwire" / path.name
            if before.read_text() != path.read_text():
                yield path

    def command_for(self, path):
        """How the build compiles this source: the file itself, or a neighbour of a new one."""
        if path.is_relative_to(self.gen):
            known = self.build / "gen" / path.relative_to(self.gen)
        else:
            known = self.source / path.relative_to(self.root)
        if str(known) not in self.commands:
            known = next(pathlib.Path(file) for file in sorted(self.commands)
                         if pathlib.Path(file).parent == known.parent)
        return known, list(self.commands[str(known)])

    def compile(self, path):
        """The object of a source: headers come from the copy first."""
        known, words = self.command_for(path)
        words = [word for word in words if not word.startswith("-fpch")]
        if "-include" in words:  # the build's precompiled header has the old calls
            at = words.index("-include")
            del words[at:at + 2]
        out = self.root / "objects" / (path.relative_to(self.root).as_posix() + ".o")
        out.parent.mkdir(parents=True, exist_ok=True)
        words[words.index("-o") + 1] = str(out)
        words = [str(path) if word == str(known) else word for word in words]
        # Behind the copy's: the build's folder has what CMake makes.
        words[1:1] = [f"-I{self.gen}", f"-I{self.root}", "-iquote", str(known.parent)]
        done = subprocess.run(self.launcher + words, cwd=self.build, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"{path} does not compile:\n{done.stderr}")
        return out


def symbols(path):
    """(defined, wanted) names of an object, as C++ spells them."""
    lines = subprocess.run(["nm", "-C", path], check=True, capture_output=True,
                           text=True).stdout.splitlines()
    sorted_out = ([], [])
    for line in lines:
        kind, _, name = line[17:].partition(" ")
        sorted_out[kind == "U"].append(name)
    return sorted_out


def check_commands(tree, blocks):
    """The targets and tests that the page's commands name are in the build files."""
    folders = [tree.source / name for name in ("codegen", "tests")]
    text = "\n".join(path.read_text() for folder in folders
                     for path in sorted(folder.rglob("CMakeLists.txt")))
    for block in blocks:
        for match in re.finditer(r"ninja -C build ([\w ]+)|-R '([\w|]+)'", block.text):
            for name in re.findall(r"\w+", match.group(1) or match.group(2)):
                assert re.search(rf"\b{name}", text), f"no build file knows {name}"
        for script in re.findall(r"^([\w./-]+\.py)\b", block.text, re.MULTILINE):
            assert (tree.source / script).exists(), f"there is no {script}"


def check_generated(tree):
    gen = tree.gen / "longwire"
    numbers = (tree.root / "proto" / "wire_numbers.txt").read_text()
    before = (tree.source / "proto" / "wire_numbers.txt").read_text()
    added = numbers.removeprefix(before)
    assert re.fullmatch(rf"\d+ {PRIVATE}\n", added), f"added to the numbers: {added!r}"
    ids = (gen / "call_ids.h").read_text()
    assert f"{PRIVATE} = {added.split()[0]}," in ids, "its number"
    word = next(line for line in ids.splitlines() if line.endswith(f"// {PRIVATE}"))
    for part in ("kAfterReply", "kClientThread", "kNothing", "kNeedsNoMemory", "kPrivate"):
        assert part in word, f"{part} is not in {word}"
    assert f"struct {PRIVATE}" in (gen / "calls.h").read_text(), "its struct"
    rows = [(folder / "support.md").read_text().splitlines()
            for folder in (tree.build / "gen" / "longwire", gen)]
    new = [line[2:] for line in difflib.ndiff(*rows) if line.startswith("+ | ")]
    assert new == [f"| `{PUBLIC}` | 12.1 |  | one round trip |"], f"rows of the list: {new}"


def check_objects(objects):
    """What the generated code wants of the call is there, by whom it is to be there."""
    defined, wanted = [], set()  # the former with the object's name
    for path in objects:
        there, missing = symbols(path)
        wanted |= {name for name in missing if PUBLIC in name or PRIVATE in name}
        defined += [(name, path.name) for name in there]

    def find(pattern):
        return sorted(path for name, path in defined if re.search(pattern, name))

    assert find(rf"^longwire::shim::hand::{PUBLIC}\(") == ["multicast.cc.o"], "the client's body"
    assert find(rf"^longwire::worker::Do_{PRIVATE}\(") == ["multicast.cc.o"], "the worker's side"
    exports = find(rf"^{PUBLIC}$")
    assert len(exports) == 2 and exports[0].startswith("shim_entries"), "the exported function"
    assert exports[1] == "vmm.cc.o", "the software device's function"
    assert find("TheGranularityOfMulticast.*::TestBody"), "the wire test"
    undefined = wanted - {name for name, _ in defined}
    assert not undefined, f"nobody defines {undefined}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("--source", "--build", "--plugin"):
        parser.add_argument(name, type=pathlib.Path, required=True)
    parser.add_argument("--protoc", required=True)
    parser.add_argument("--launcher", default="")
    options = parser.parse_args()
    tree = Tree(options)
    blocks = page.read_blocks((options.source / "docs" / "adding-a-call.md").read_text())
    missing = [place for place in PLACES if not any(b.path.startswith(place) for b in blocks)]
    assert not missing, f"the page says nothing of {missing}"
    for block in blocks:
        if block.language != "sh":
            tree.write(block)
    check_commands(tree, [block for block in blocks if block.language == "sh"])
    subprocess.run([sys.executable, tree.root / "codegen/import/assign_numbers.py"], check=True)
    tree.generate(options.protoc, options.plugin)
    check_generated(tree)
    sources = [tree.root / path for path in sorted({b.path for b in blocks if
                                                     b.path.endswith(".cc")})]
    # Of the software device the table is in a file that another one includes.
    table = "softgpu/driver/proc_address.cc"
    shutil.copy(tree.source / table, tree.root / table)
    objects = []
    for path in [*sources, tree.root / table, *tree.changed()]:
        print(path.relative_to(tree.root), flush=True)
        objects.append(tree.compile(path))
    check_objects(objects)
    print(f"{len(objects)} files compiled")


if __name__ == "__main__":
    main()
