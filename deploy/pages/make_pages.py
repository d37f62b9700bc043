#!/usr/bin/env python3
"""Manual pages of all programs and commands, made by help2man of what their --help prints, and the
shells' completions of longwire.

make_pages.py BIN OUT     BIN: the folder of the programs; OUT: gets man1/, man8/, completions/
"""
import concurrent.futures
import gzip
import pathlib
import re
import subprocess
import sys

SERVICES = ("longwired", "longwire-warden", "longwire-keeper", "longwire-worker",
            "longwire-signer", "longwire-web")
SHELLS = {"bash": "longwire", "zsh": "_longwire", "fish": "longwire.fish"}


def commands_of(help_text):
    """The names under "Commands:"."""
    section = re.search(r"^Commands:\n((?:  .*\n)*)", help_text, re.M)
    return re.findall(r"^  (\S+)", section[1], re.M) if section else []


def run(*words):
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout


def walk(binary, path):
    """All commands with their help: ("longwire", "cert", "init") and so on."""
    text = run(binary, *path[1:], "--help")
    yield path, text
    for name in commands_of(text):
        yield from walk(binary, (*path, name))


def write_page(out, section, binary, path, text):
    """longwire-cert-init.1.gz"""
    name = "-".join(path)
    about = " ".join(text.split("\n\n")[0].split()).split(": ", 1)[1]
    version = run(binary, "--version").split()[-1]
    command = " ".join([str(binary), *path[1:]])
    page = run("help2man", "--no-info", "--section", str(section), "--version-string", version,
               "--name", about, command)
    page = re.sub(r'^\.TH \S+ "\d" "[^"]*" "[^"]*"', f'.TH {name.upper()} "{section}" "" '
                  f'"Longwire {version}"', page, count=1, flags=re.M)
    page = re.sub(r"^(\.SH NAME\n).* \\- ", lambda found: f"{found[1]}{name} \\\\- ".replace(
        "\\\\-", "\\-"), page, count=1, flags=re.M)
    file = out / f"man{section}" / f"{name}.{section}.gz"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(gzip.compress(page.encode(), mtime=0))


def main():
    binaries, out = map(pathlib.Path, sys.argv[1:])
    pages = [(1, binaries / "longwire", path, text)
             for path, text in walk(binaries / "longwire", ("longwire",))]
    pages += [(section, binaries / name, (name,), run(binaries / name, "--help"))
              for section, names in ((8, SERVICES), (1, ("longwire-link",))) for name in names]
    with concurrent.futures.ThreadPoolExecutor() as pool:
        list(pool.map(lambda page: write_page(out, *page), pages))
    (out / "completions").mkdir(parents=True, exist_ok=True)
    for shell, name in SHELLS.items():
        (out / "completions" / name).write_text(run(binaries / "longwire", "completion", shell))


if __name__ == "__main__":
    main()
