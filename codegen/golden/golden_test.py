#!/usr/bin/env python3
"""What the generator writes for the kitchen sink, byte by byte, and what it refuses.

golden_test.py PROTOC PLUGIN PROTO_FOLDER [--update]: with --update the expected files are written
anew (look at the difference before you commit it). Each file of bad/ begins with lines
"// expect: part of an error", all of which must be said.
"""

import difflib
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent


def generate(protoc, plugin, folders, files, numbers, out):
    return subprocess.run(
        [protoc, *(f"-I{folder}" for folder in folders), f"--plugin={plugin}",
         f"--longwire_out=numbers={numbers}:{out}", *files],
        capture_output=True, text=True, cwd=folders[0])


def check_golden(protoc, plugin, proto, update):
    description = HERE / "description"
    with tempfile.TemporaryDirectory() as out:
        result = generate(protoc, plugin, [description, proto],
                          ["calls/kitchen_sink.proto", "calls/private.proto"],
                          description / "wire_numbers.txt", out)
        if result.returncode != 0:
            return [result.stderr]
        made = {path.name: path.read_text() for path in pathlib.Path(out, "longwire").iterdir()}
    expected_folder = HERE / "expected"
    if update:
        for path in expected_folder.iterdir():
            path.unlink()
        for name, text in made.items():
            (expected_folder / name).write_text(text)
        return []
    expected = {path.name: path.read_text() for path in expected_folder.iterdir()}
    faults = []
    for name in sorted(made.keys() | expected.keys()):
        faults += difflib.unified_diff(expected.get(name, "").splitlines(True),
                                       made.get(name, "").splitlines(True),
                                       f"expected/{name}", f"made/{name}")
    return faults


def check_bad(protoc, plugin, proto, path):
    wanted = [line.removeprefix("// expect: ").strip() for line in path.read_text().splitlines()
              if line.startswith("// expect: ")]
    numbers = path.with_suffix(".txt")
    with tempfile.TemporaryDirectory() as out:
        result = generate(protoc, plugin, [path.parent, proto], [path.name],
                          numbers if numbers.exists() else path.parent / "numbers.txt", out)
    if not wanted:
        return [f"{path.name} does not say what to expect\n"]
    if result.returncode == 0:
        return [f"{path.name} was accepted\n"]
    return [f"{path.name}: not said: {text}\nsaid: {result.stderr}" for text in wanted
            if text not in result.stderr]


def main(protoc, plugin, proto, *flags):
    faults = check_golden(protoc, f"protoc-gen-longwire={plugin}", proto, "--update" in flags)
    for path in sorted((HERE / "bad").glob("*.proto")):
        faults += check_bad(protoc, f"protoc-gen-longwire={plugin}", proto, path)
    sys.stdout.writelines(faults)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
