#!/usr/bin/env python3
"""Compares cuda.h with the call description and prints skeletons of what is not described.

Run by hand when a toolkit appears:
    codegen/import/import_cuda_h.py [--include /usr/local/cuda/include] [--types]
It prints functions that are new (as messages to complete, under their file's name), changed or
gone, and types that are new or have another size; --types prints every C type as types.proto would
have it.
"""

import argparse
import re
import sys
from pathlib import Path

import cuda_header
import description
import skeleton

ROOT = Path(__file__).resolve().parents[2]


def split_symbol(symbol):
    """(symbol without _ptds or _ptsz, base name, mode)."""
    match = re.fullmatch(r"((\w+?)(?:_v\d+)?)(?:_(ptds|ptsz))?", symbol)
    return match.group(1), match.group(2), match.group(3) or ""


def introductions(functions, thresholds):
    """Symbol (with _ptds, _ptsz) -> version: the n-th variant came with the n-th threshold."""
    variants = {}
    for symbol in functions:
        _, base, mode = split_symbol(symbol)
        variants.setdefault((base, mode), []).append(symbol)
    found = {}
    for key, symbols in variants.items():
        symbols.sort(key=lambda symbol: (len(symbol), symbol))
        found.update(zip(symbols, thresholds.get(key, [])))
    return found


def options_of(symbol, functions, introduced):
    options = [f"introduced: {introduced.get(symbol, 0)}"]
    for mode in ("ptsz", "ptds"):
        variant = f"{symbol}_{mode}"
        if variant in functions:
            options.append(f"per_thread: {mode.upper()}")
            if introduced.get(variant) not in (None, max(7000, introduced.get(symbol, 0))):
                options.append(f"introduced_per_thread: {introduced[variant]}")
    return options


def differences(function, described, functions, introduced):
    """Yields what the description says otherwise than the header."""
    for index in range(max(len(function.parameters), len(described.signature))):
        header = function.parameters[index:index + 1]
        theirs = f"{header[0].c_type} {header[0].name}" if header else "nothing"
        ours = (described.signature[index:index + 1] or ["nothing"])[0]
        # Device pointers that C calls void* are described as numbers.
        if theirs.replace("void*", "device") != ours.replace("void*", "device"):
            yield f"parameter {index + 1} is {theirs}, described as {ours}"
    if introduced.get(function.symbol) != described.introduced:
        yield f"introduced in {introduced.get(function.symbol)}, not {described.introduced}"
    mode = next((m for m in ("ptsz", "ptds") if f"{function.symbol}_{m}" in functions), "")
    if mode != described.per_thread:
        yield f"the per-thread form is '{mode}', not '{described.per_thread}'"


def compare_types(types, sizes):
    """Prints the types that are new or have another size, and says how many they are."""
    count = 0
    for c_type in types.types.values():
        if c_type.name not in sizes:
            print(f"// new: types.proto\n{skeleton.type_message(c_type)}")
        elif sizes[c_type.name] not in (None, types.sizes[c_type.name]):
            print(f"changed: {c_type.name} (types.proto) has {types.sizes[c_type.name]} bytes, "
                  f"not {sizes[c_type.name]}")
        else:
            continue
        count += 1
    return count


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--include", default="/usr/local/cuda/include")
    parser.add_argument("--proto", type=Path, default=ROOT / "proto")
    parser.add_argument("--types", action="store_true")
    arguments = parser.parse_args()

    text = cuda_header.preprocess(arguments.include)
    functions = cuda_header.functions(text)
    groups = cuda_header.groups(arguments.include)
    introduced = introductions(functions, cuda_header.thresholds(arguments.include))
    names = {parameter.base for function in functions.values()
             for parameter in function.parameters} - {"void", "char"}
    types = cuda_header.Types(text, arguments.include, names)
    if arguments.types:
        for c_type in types.types.values():
            print(skeleton.type_message(c_type))
        return 0

    described = description.read(arguments.proto)
    plain = {symbol for symbol in functions if not split_symbol(symbol)[2]}
    new, gone = sorted(plain - described.keys()), sorted(described.keys() - plain)
    changed = 0
    for symbol in new:
        print(f"// new: {cuda_header.chapter(symbol, groups)}.proto")
        print(skeleton.message(functions[symbol], options_of(symbol, functions, introduced), {}))
    for symbol in gone:
        print(f"gone: {symbol} ({described[symbol].file}:{described[symbol].line})")
    for symbol in sorted(plain & described.keys()):
        ours = described[symbol]
        for sentence in differences(functions[symbol], ours, functions, introduced):
            changed += 1
            print(f"changed: {symbol} ({ours.file}:{ours.line}): {sentence}")
    other_types = compare_types(types, description.struct_sizes(arguments.proto / "types.proto"))
    print(f"{len(new)} new, {changed} changed, {len(gone)} gone, {len(plain)} in the header; "
          f"{other_types} types new or changed", file=sys.stderr)
    return 1 if new or gone or changed or other_types else 0


if __name__ == "__main__":
    sys.exit(main())
