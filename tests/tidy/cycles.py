"""Include cycles: none may be larger than its folder's limit."""
import os

import includes

# Sorted: how many units of a folder may include one another in a circle. All others: 1, none.
LIMITS = {
    "client-shim": 5,
    "server/worker/testing": 2,
}


def limit_of(folder):
    """That of the folder or of the nearest one above it that has one."""
    while folder:
        if folder in LIMITS:
            return LIMITS[folder]
        folder = os.path.dirname(folder)
    return 1


def check_cycles(root, paths):
    """Yields cycles that are too large for the folder in which they lie as a whole."""
    edges = includes.find_edges(root, paths)
    for cycle in includes.find_cycles(edges):
        folder = os.path.commonpath(["/" + os.path.dirname(unit) for unit in cycle]).lstrip("/")
        if len(cycle) <= limit_of(folder):
            continue
        left, unit, other = includes.best_cut(edges, cycle)
        yield (f"{edges[unit][other]}: {len(cycle)} files include one another in a circle, "
               f"{limit_of(folder)} are allowed in {folder or 'all folders together'}: "
               f"{' '.join(cycle)}. "
               f"Without {unit} -> {other} {'none' if left == 1 else left} would be left")
