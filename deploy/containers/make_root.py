#!/usr/bin/env python3
"""The file system of an image, as a tar archive: Debian's libraries by mmdebstrap, and Longwire.

make_root.py client|server --build FOLDER --out FILE.tar

As root, on the Debian release for which the packages were built. FOLDER is a build that has made
them (`./dev package`: build-release).
"""
import argparse
import os
import pathlib
import re
import subprocess
import tempfile

USER = 65532  # as of the Containerfiles
# What packages want of a system that boots; an image does not.
NOT_NEEDED = {"systemd", "passwd", "longwire-common"}
TOOLS = {"client": ["coreutils"], "server": []}
# Of apt, of the machine on which this runs, and what nobody reads there.
NOT_IN_AN_IMAGE = ("var/lib/apt", "var/lib/dpkg", "var/cache/apt", "etc/apt", "etc/dpkg",
                   "etc/resolv.conf", "etc/hostname", "etc/fstab", "usr/share/man",
                   "usr/share/locale", "usr/share/info", "lib/systemd", "usr/lib/systemd")
OWN = ("run/longwire", "var/cache/longwire", "var/lib/longwire", "tmp")


def run(*command, **options):
    return subprocess.run([str(word) for word in command], check=True, text=True,
                          capture_output=True, **options).stdout


def needs(package):
    """Names of what a package depends on."""
    listed = run("dpkg-deb", "-f", package, "Depends")
    return {re.split(r"[ (|]", one.strip())[0] for one in listed.split(",")} - NOT_NEEDED


def apt_sources():
    """How this machine reaches its mirror."""
    places = ("/etc/apt/sources.list.d/debian.sources", "/etc/apt/sources.list")
    sources = [place for place in places if os.path.exists(place) and os.path.getsize(place)]
    proxies = [f"--aptopt={line}" for line in run("apt-config", "dump").splitlines()
               if line.startswith("Acquire::http") and "::Proxy" in line]
    return proxies, sources[:1]


def make_base(folder, packages):
    release = run("sh", "-c", ". /etc/os-release; echo $VERSION_CODENAME").strip()
    proxies, sources = apt_sources()
    run("mmdebstrap", "--quiet", "--mode=root", "--variant=extract",
        f"--include={','.join(sorted(packages))}", *proxies, release, folder, *sources)


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def add_longwire(kind, build, folder):
    if kind == "client":
        target = folder / "opt" / "longwire"
        target.mkdir(parents=True)
        [packed] = (build / "relocatable").glob("longwire-client-*.tar.xz")
        run("tar", "-xf", packed, "-C", target, "--strip-components=1", "--no-same-owner")
        return
    for package in server_packages(build):
        run("dpkg-deb", "-x", package, folder)
    # Also what a client without a name for its user would miss.
    write(folder / "etc/passwd", f"root:x:0:0::/:/\nlongwire:x:{USER}:{USER}::/:/\n")
    write(folder / "etc/group", f"root:x:0:\nlongwire:x:{USER}:\n")
    (folder / "etc/longwire/longwired.yaml").chmod(0o644)


def server_packages(build):
    found = [path for name in ("longwire-server", "longwire-common")
             for path in (build / "packages").glob(f"{name}_*.deb")]
    if len(found) != 2:
        raise SystemExit(f"{build}/packages has not one longwire-server and one longwire-common: "
                         "make them with ./dev package")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=TOOLS)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    options = parser.parse_args()
    wanted = {"libc6", *TOOLS[options.kind]}
    if options.kind == "server":
        for package in server_packages(options.build):
            wanted |= needs(package)
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch) / "root"
        make_base(folder, wanted)
        add_longwire(options.kind, options.build, folder)
        for name in NOT_IN_AN_IMAGE:
            run("rm", "-rf", folder / name)
        for name in OWN:
            (folder / name).mkdir(parents=True, exist_ok=True)
            os.chown(folder / name, USER, USER)
        (folder / "tmp").chmod(0o1777)
        (folder / "run/longwire").chmod(0o700)
        folder.chmod(0o755)
        options.out.parent.mkdir(parents=True, exist_ok=True)
        run("tar", "--numeric-owner", "--exclude=./dev/*", "-C", folder, "-cf", options.out, ".")


if __name__ == "__main__":
    main()
