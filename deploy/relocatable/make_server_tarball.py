#!/usr/bin/env python3
"""The server as one folder, which runs from wherever it is unpacked: its programs, and all
libraries that they need but the C library's. They are those of this host, so it runs where the C
library is not older than this host's.

make_server_tarball.py --build FOLDER --source FOLDER --out FILE.tar.xz
"""
import argparse
import io
import lzma
import pathlib
import re
import subprocess
import tarfile
import tempfile

PROGRAMS = ("longwire", "longwired", "longwire-warden", "longwire-starter", "longwire-walls",
            "longwire-keeper", "longwire-worker", "longwire-signer")
SOFTWARE_DEVICE = "lib/longwire/softgpu/libcuda.so.1"
LIBRARIES = "lib/longwire/server"
# Of the C library, which a host has.
OF_THE_HOST = re.compile(r"(libc|libm|libdl|libpthread|librt|libresolv|libutil)\.so\.\d+"
                         r"|ld-linux.*")


def run(*command):
    return subprocess.run([str(word) for word in command], check=True, text=True,
                          capture_output=True).stdout


def libraries_of(program):
    """Name and file of each library that it needs, also by others."""
    for name, file in re.findall(r"^\s*(\S+) => (\S+) \(", run("ldd", program), re.M):
        if not OF_THE_HOST.fullmatch(name):
            yield name, pathlib.Path(file).resolve(strict=True)


def package_of(file):
    found = subprocess.run(["dpkg", "-S", file], text=True, capture_output=True, check=False).stdout
    if not found:  # as the file was named before /lib and /usr/lib became one
        found = run("dpkg", "-S", f"*/{file.name}")
    return found.split(":")[0]


def stripped(file, scratch):
    out = scratch / file.name
    run("strip", "--strip-unneeded", "-o", out, file)
    return out


def program_bytes(file, scratch):
    """It finds its libraries by its own place, and they each other by its."""
    out = stripped(file, scratch)
    run("patchelf", "--force-rpath", "--set-rpath", f"$ORIGIN/../{LIBRARIES}", out)
    return out.read_bytes()


def files(build, source, scratch):
    """(path in the folder, contents, mode)"""
    libraries = {}
    for name in PROGRAMS:
        program = build / "dist" / "bin" / name
        libraries.update(libraries_of(program))
        yield f"bin/{name}", program_bytes(program, scratch), 0o755
    for name, file in sorted(libraries.items()):
        yield f"{LIBRARIES}/{name}", file.read_bytes(), 0o644
    software = (build / "dist" / SOFTWARE_DEVICE).resolve()
    yield SOFTWARE_DEVICE, stripped(software, scratch).read_bytes(), 0o644
    yield "longwired.yaml.example", (source / "deploy" / "longwired.yaml").read_bytes(), 0o644
    for name in ("LICENSE", "NOTICE"):
        yield f"share/doc/longwire/{name}", (source / name).read_bytes(), 0o644
    for page in sorted((source / "docs").glob("*.md")):
        yield f"share/doc/longwire/{page.name}", page.read_bytes(), 0o644
    for package in sorted({package_of(file) for file in libraries.values()}):
        licence = pathlib.Path("/usr/share/doc") / package / "copyright"
        yield (f"share/doc/longwire/libraries/{package}",
               licence.resolve(strict=True).read_bytes(), 0o644)


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
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_bytes(lzma.compress(made.getvalue(), preset=1))


if __name__ == "__main__":
    main()
