#!/usr/bin/env python3
"""The relocatable client: one folder, which runs from wherever it is unpacked.

make_tarball.py --build FOLDER --source FOLDER --out FILE.tar.xz
"""
import argparse
import io
import lzma
import pathlib
import subprocess
import tarfile
import tempfile

# Debian's packages of what is linked in: their licences want to be shipped with it.
LINKED_IN = ("libgrpc++-dev", "libprotobuf-dev", "libabsl-dev", "libssl-dev", "libc-ares-dev",
             "libre2-dev", "libyaml-cpp-dev", "liblz4-dev", "libzstd-dev", "zlib1g-dev",
             "libcli11-dev", "libncurses-dev")
PAGES = "environment.md", "host-memory.md", "identity.md", "install.md", "nccl.md", "switches.md", \
    "tracing.md", "usage.md", "from-local.md"


def stripped(path, scratch):
    out = scratch / path.name
    subprocess.run(["strip", "--strip-unneeded", "-o", out, path], check=True)
    return out.read_bytes()


def licence_of(package):
    """Debian keeps one file for packages of the same source."""
    file = pathlib.Path("/usr/share/doc") / package / "copyright"
    return file.resolve(strict=True).read_bytes()


def files(build, source, scratch):
    """(path in the folder, contents, mode)"""
    for name in ("longwire", "longwire-link"):
        yield f"bin/{name}", stripped(build / "relocatable" / "bin" / name, scratch), 0o755
    for name in ("libcuda.so.1", "libnvidia-ml.so.1"):
        library = (build / "dist" / "lib" / "longwire" / name).resolve()
        yield f"lib/longwire/{name}", stripped(library, scratch), 0o644
    for page in sorted((build / "pages" / "man1").iterdir()):
        yield f"share/man/man1/{page.name}", page.read_bytes(), 0o644
    for folder, name in (("bash-completion/completions", "longwire"),
                         ("zsh/site-functions", "_longwire"),
                         ("fish/vendor_completions.d", "longwire.fish")):
        yield f"share/{folder}/{name}", (build / "pages" / "completions" / name).read_bytes(), 0o644
    yield "client.conf.example", (source / "deploy" / "client.conf").read_bytes(), 0o644
    for page in PAGES:
        yield f"share/doc/longwire/{page}", (source / "docs" / page).read_bytes(), 0o644
    for name in ("LICENSE", "NOTICE"):
        yield f"share/doc/longwire/{name}", (source / name).read_bytes(), 0o644
    for package in LINKED_IN:
        yield f"share/doc/longwire/linked-in/{package}", licence_of(package), 0o644


def main():
    parser = argparse.ArgumentParser()
    for option in ("--build", "--source", "--out"):
        parser.add_argument(option, type=pathlib.Path, required=True)
    options = parser.parse_args()
    folder = options.out.name.removesuffix(".tar.xz")
    made = io.BytesIO()
    with tempfile.TemporaryDirectory() as scratch, tarfile.open(fileobj=made, mode="w") as tar:
        for path, contents, mode in files(options.build, options.source, pathlib.Path(scratch)):
            entry = tarfile.TarInfo(f"{folder}/{path}")
            entry.size, entry.mode = len(contents), mode
            tar.addfile(entry, io.BytesIO(contents))
    # Quick rather than small: this is made with each build that tests use.
    options.out.write_bytes(lzma.compress(made.getvalue(), preset=1))


if __name__ == "__main__":
    main()
