"""What cudaTypedefs.h says about variants: which symbol serves a name at a version, in a mode."""

import pathlib
import re

LEGACY, PER_THREAD = 0, 2


def read_list(path):
    """First words of a list's lines, comments left out."""
    lines = pathlib.Path(path).read_text().splitlines()
    return [line.split()[0] for line in lines if line.strip() and not line.startswith("#")]


def read_thresholds(include):
    """(name, "" | "ptds" | "ptsz") -> versions at which a variant was introduced, in order."""
    found = {}
    for header in ("cudaTypedefs.h", "cudaProfilerTypedefs.h"):
        text = (pathlib.Path(include) / header).read_text()
        for name, version, mode in re.findall(r"\*PFN_(cu\w+?)_v(\d+)(?:_(ptds|ptsz))?\)", text):
            found.setdefault((name, mode), set()).add(int(version))
    return {key: sorted(versions) for key, versions in found.items()}


def variants(exports, name, mode):
    """The exported symbols of a name in a mode, oldest first: X, X_v2, X_v3."""
    suffix = f"_{mode}" if mode else ""
    pattern = re.compile(rf"{name}(_v(\d+))?{suffix}")
    matches = [match for match in map(pattern.fullmatch, exports) if match]
    return [match.group() for match in sorted(matches, key=lambda m: int(m.group(2) or 1))]


def expected_lookups(exports, include):
    """Yields (name, mode, version, symbol) for every variant of every name of the header."""
    thresholds = read_thresholds(include)
    for (name, mode), versions in sorted(thresholds.items()):
        symbols = variants(exports, name, mode)
        if len(symbols) != len(versions):
            raise ValueError(f"{name} {mode}: symbols {symbols}, versions {versions}")
        for version, symbol in zip(versions, symbols):
            yield name, PER_THREAD if mode else LEGACY, version, symbol
