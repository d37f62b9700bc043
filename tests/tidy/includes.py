"""Who includes whom. A unit is a source with its header: X.cc, X.cu and X.h are one."""
import collections
import os
import pathlib
import re

C_SUFFIXES = {".cc", ".h", ".cu"}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')


def unit_of(path):
    """As a path without suffix."""
    return str(pathlib.PurePath(path).with_suffix(""))


def find_edges(root, paths):
    """{unit: {unit that it includes: "file:line" of the first place}}, for every unit."""
    sources = sorted(path for path in paths if path.suffix in C_SUFFIXES)
    edges = {unit_of(path): {} for path in sources}
    for path in sources:
        here = unit_of(path)
        text = (root / path).read_text(encoding="utf-8", errors="replace")
        for number, line in enumerate(text.split("\n"), 1):
            match = INCLUDE.match(line)
            if match is None:
                continue
            beside = os.path.normpath(os.path.join(os.path.dirname(path), match[1]))
            for there in (unit_of(match[1]), unit_of(beside)):
                if there in edges and there != here:
                    edges[here].setdefault(there, f"{path}:{number}")
                    break
    return edges


def find_knots(edges):
    """The strongly connected components, each sorted; a component comes after what it depends on.

    Tarjan's algorithm, with a stack of its own.
    """
    index, low, path, on_path, knots = {}, {}, [], set(), []

    def enter(node):
        index[node] = low[node] = len(index)
        path.append(node)
        on_path.add(node)
        return node, iter(sorted(edges[node]))

    for root in sorted(edges):
        if root in index:
            continue
        work = [enter(root)]
        while work:
            node, rest = work[-1]
            for other in rest:
                if other not in index:
                    work.append(enter(other))
                    break
                if other in on_path:
                    low[node] = min(low[node], index[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    first = path.index(node)
                    knots.append(sorted(path[first:]))
                    on_path.difference_update(path[first:])
                    del path[first:]
    return knots


def find_cycles(edges):
    return [knot for knot in find_knots(edges) if len(knot) > 1]


def best_cut(edges, cycle):
    """The edge without which the largest cycle that is left is smallest, and how large that is."""
    best = None
    inside = {unit: set(edges[unit]) & set(cycle) for unit in cycle}
    for unit in cycle:
        for other in sorted(inside[unit]):
            inside[unit].remove(other)
            left = max(map(len, find_knots(inside)))
            inside[unit].add(other)
            if best is None or left < best[0]:
                best = (left, unit, other)
    return best


def is_test(unit):
    parts = pathlib.PurePath(unit).parts
    return (parts[0] == "tests" or "testing" in parts or "golden" in parts
            or parts[-1].endswith("_test") or any(part.startswith("test_") for part in parts))


def between_rooms(edges):
    """{folder: folders that it includes}, of units that are no tests."""
    rooms = collections.defaultdict(set)
    for unit, others in edges.items():
        if is_test(unit):
            continue
        room = os.path.dirname(unit)
        rooms[room].update(os.path.dirname(other) for other in others if not is_test(other))
        rooms[room].discard(room)
    return dict(rooms)
