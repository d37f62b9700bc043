#!/usr/bin/env python3
"""Draws the folders with code as layers: each lies above all that it includes. docs/map.svg.

Lines lead down to what a folder includes, but for what something between the two includes as well.
Folders that include one another in a circle share one box with a dashed frame. Tests are left out.
"""
import argparse
import pathlib
import sys
from xml.sax import saxutils

import includes
import tidy

WIDTH = 1180       # of the picture, in pixels, as all that follows
CHARACTER = 7.3    # of a name, in the box's font
PADDING = 12       # left and right of it
LINE = 18          # height of a name
GAP = 16           # between the boxes of a row
ROW_GAP = 12       # between the rows of a layer
LAYER_GAP = 46
MARGIN = 20
FILE = "docs/map.svg"


class Box:
    """One folder, or several that include one another."""

    def __init__(self, names):
        self.names = names
        self.below = set()   # boxes that it includes
        self.layer = 0
        self.x = self.y = 0.0
        self.width = max(map(len, names)) * CHARACTER + 2 * PADDING
        self.height = len(names) * LINE + 10

    def reaches(self, other):
        return any(box is other or box.reaches(other) for box in self.below)


def make_boxes(rooms):
    """From the lowest up."""
    everything = set(rooms).union(*rooms.values())
    edges = {room: rooms.get(room, set()) for room in everything}
    boxes, box_of = [], {}
    for knot in includes.find_knots(edges):
        box = Box(knot)
        box_of.update(dict.fromkeys(knot, box))
        box.below = {box_of[other] for room in knot for other in edges[room]} - {box}
        box.layer = max((other.layer + 1 for other in box.below), default=0)
        boxes.append(box)
    return boxes


def rows_of(boxes):
    """A layer's boxes in rows that are not too wide."""
    rows, width = [[]], 0.0
    for box in sorted(boxes, key=lambda one: one.names):
        if rows[-1] and width + box.width > WIDTH - 2 * MARGIN:
            rows.append([])
            width = 0.0
        rows[-1].append(box)
        width += box.width + GAP
    return rows


def place(boxes):
    """Gives every box its place, the highest layer first, and returns the picture's height."""
    y = float(MARGIN)
    for layer in sorted({box.layer for box in boxes}, reverse=True):
        for row in rows_of([box for box in boxes if box.layer == layer]):
            x = (WIDTH - sum(box.width + GAP for box in row) + GAP) / 2
            for box in row:
                box.x, box.y = x, y
                x += box.width + GAP
            y += max(box.height for box in row) + ROW_GAP
        y += LAYER_GAP - ROW_GAP
    return y - LAYER_GAP + MARGIN


def lines_of(box):
    """To what no other box that it includes reaches as well."""
    for other in sorted(box.below, key=lambda one: one.names):
        if not any(between.reaches(other) for between in box.below if between is not other):
            yield (f'<line x1="{box.x + box.width / 2:.1f}" y1="{box.y + box.height:.1f}" '
                   f'x2="{other.x + other.width / 2:.1f}" y2="{other.y:.1f}"/>')


def draw_box(box):
    circle = ' class="circle"' if len(box.names) > 1 else ""
    yield (f'<rect{circle} x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" '
           f'height="{box.height:.1f}" rx="4"/>')
    for number, name in enumerate(box.names):
        yield (f'<text x="{box.x + box.width / 2:.1f}" y="{box.y + 17 + number * LINE:.1f}">'
               f'{saxutils.escape(name)}</text>')


def draw(root):
    edges = includes.find_edges(root, tidy.list_files(root))
    boxes = make_boxes(includes.between_rooms(edges))
    height = place(boxes)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}">',
        "<!-- Written by ./dev map: every folder lies above all that it includes. -->",
        "<style>",
        "svg { background: #fff; }",
        "line { stroke: #8a94a6; stroke-width: 1; opacity: 0.7; }",
        "rect { fill: #eef3fb; stroke: #4a6fa5; }",
        "rect.circle { fill: #fdeeee; stroke: #b03030; stroke-dasharray: 5 3; }",
        "text { font: 12px monospace; text-anchor: middle; fill: #1d2733; }",
        "</style>",
    ]
    for box in boxes:
        parts += lines_of(box)
    for box in boxes:
        parts += draw_box(box)
    return "\n".join(parts + ["</svg>", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path.cwd())
    parser.add_argument("--check", action="store_true", help=f"ends with 1 if {FILE} is old")
    arguments = parser.parse_args()
    target = arguments.root / FILE
    picture = draw(arguments.root)
    if not arguments.check:
        target.write_text(picture)
    elif not target.is_file() or target.read_text() != picture:
        print(f"{FILE} is not what the includes say: ./dev map writes it")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
