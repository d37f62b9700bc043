#!/usr/bin/env python3
"""Writes the files of the page into a source file, so that longwire-web needs no folder.

embed.py OUT FILE…     OUT defines web::Assets()
"""
import pathlib
import sys

TYPES = {".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8",
         ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
END = ")longwire"  # of a literal; no file has it
HEAD = """#include "web/assets.h"

namespace longwire::web {

std::span<const Asset> Assets() {
  static const Asset assets[] = {
"""
TAIL = """  };
  return assets;
}

}  // namespace longwire::web
"""


def main():
    out, *files = map(pathlib.Path, sys.argv[1:])
    rows = []
    for file in sorted(files):
        text = file.read_text()
        assert END not in text, file
        path = "/" if file.name == "index.html" else f"/{file.name}"
        rows.append(f'    {{"{path}", "{TYPES[file.suffix]}", R"longwire({text}{END}"}},\n')
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(HEAD + "".join(rows) + TAIL)


if __name__ == "__main__":
    main()
