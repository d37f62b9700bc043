"""No folder of the product has more files than a reader takes in at once."""
import collections

MOST = 25
FOLDERS = ("base", "cli", "client-shim", "codegen", "link", "mempool", "nvml-shim", "proto",
           "scheduler", "server", "softgpu", "wire")
SUFFIXES = (".cc", ".cu", ".h", ".proto", ".py")
# Those that have more. Sorted; numbers only go down.
LIMITS = {}


def check_sizes(paths):
    """Yields folders with too many files. A source and its header are one; tests do not count."""
    files = collections.defaultdict(set)
    for path in paths:
        is_test = path.stem.endswith(("_test", "_fixture")) or "golden" in path.parts
        if path.parts[0] in FOLDERS and path.suffix in SUFFIXES and not is_test:
            files[str(path.parent)].add(path.stem)
    for folder, names in sorted(files.items()):
        limit = LIMITS.get(folder, MOST)
        if len(names) > limit:
            yield f"{folder}: {len(names)} files, {limit} are allowed"
