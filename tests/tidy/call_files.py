"""Where the code of calls stands: at both ends in folders and files that are named after those of
the description, X.cc or X_something.cc for X.proto. The body of a function that programs call
stands in a file of the chapter that describes it."""
import pathlib
import re

DESCRIPTION = pathlib.Path("proto/calls")
ENDS = (pathlib.Path("client-shim/calls"), pathlib.Path("server/worker/calls"))
# What several files share, without a suffix. Sorted.
SHARED = {
    "client-shim/calls/code/functions",
    "server/worker/calls/call_context",
    "server/worker/calls/code/functions",
}
MESSAGE = re.compile(r"^message (cu\w+) \{", re.MULTILINE)
BODY = re.compile(r"^CUresult (cu\w+)\(", re.MULTILINE)


def is_of(file, described):
    """Whether a file may have calls of the description's: both relative, without a suffix."""
    return file.parent == described.parent and (
        file.name == described.name or file.name.startswith(described.name + "_"))


def check_call_files(root, paths):
    """Yields sources with another name, and bodies in the file of another chapter."""
    protos = [path for path in paths if path.suffix == ".proto" and DESCRIPTION in path.parents]
    described = [path.relative_to(DESCRIPTION).with_suffix("") for path in protos]
    home = {name: proto for path, proto in zip(protos, described)
            for name in MESSAGE.findall((root / path).read_text())}
    for path in paths:
        end = next((end for end in ENDS if end in path.parents), None)
        if end is None or path.suffix not in (".cc", ".h") or path.stem.endswith("_test"):
            continue
        file = path.relative_to(end).with_suffix("")
        if not any(is_of(file, proto) for proto in described):
            if str(path.with_suffix("")) not in SHARED:
                yield f"{path}:1: no file of {DESCRIPTION} has this name, or its beginning"
        text = (root / path).read_text()
        for match in BODY.finditer(text):
            proto = home.get(match[1])
            if proto is not None and not is_of(file, proto):
                line = text.count("\n", 0, match.start()) + 1
                yield f"{path}:{line}: {match[1]} is described in {DESCRIPTION / proto}.proto"
