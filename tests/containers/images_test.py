"""The images of client and server: built with buildah from their Containerfiles, and run."""
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
import programs  # noqa: E402
import server  # noqa: E402

FOLDER = ROOT / "deploy" / "containers"
BUILD = server.build_folder()
USER = 65532
KINDS = ("client", "server")


def instructions(kind):
    """(word, rest) of each instruction of a Containerfile."""
    text = (FOLDER / f"{kind}.Containerfile").read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [tuple(line.split(maxsplit=1)) for line in lines]


class TextTest(unittest.TestCase):
    """What linters of such files look for."""

    def test_each_file(self):
        for kind in KINDS:
            with self.subTest(kind):
                found = instructions(kind)
                self.assertEqual(("FROM", "scratch"), found[0])
                self.assertEqual([f"{kind}-root.tar /"],
                                 [rest for word, rest in found if word == "ADD"])
                words = [word for word, _ in found]
                self.assertEqual([], sorted(set(words) & {"RUN", "MAINTAINER", "SHELL", "COPY"}))
                [user] = [rest for word, rest in found if word == "USER"]
                self.assertEqual(f"{USER}:{USER}", user)
                self.assertLess(words.index("USER"), words.index("ENTRYPOINT"))
                for word, rest in found:
                    if word in ("ENTRYPOINT", "CMD", "VOLUME"):  # no shell reads them
                        self.assertIsInstance(json.loads(rest), list)
                    self.assertNotRegex(rest, "(?i)password|secret|:latest")


class ImageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory(
            prefix="longwire-images-")))
        cls.folder.chmod(0o755)
        for kind in KINDS:
            out = BUILD / "containers" / f"{kind}-root.tar"
            newest = max(file.stat().st_mtime for file in
                         [*(BUILD / "packages").glob("*.deb"), FOLDER / "make_root.py",
                          *(BUILD / "relocatable").glob("*.tar.xz")])
            if not out.exists() or out.stat().st_mtime < newest:
                subprocess.run([sys.executable, FOLDER / "make_root.py", kind, "--build", BUILD,
                                "--out", out], check=True)
            shutil.copy(FOLDER / f"{kind}.Containerfile", out.parent)
            cls.buildah("build", "--isolation", "chroot", "--pull-never", "--file",
                        f"{kind}.Containerfile", "--tag", f"longwire-{kind}", out.parent)

    @classmethod
    def buildah(cls, *words):
        store = ["--root", cls.folder / "store", "--runroot", cls.folder / "run",
                 "--storage-driver", "vfs"]
        result = subprocess.run(["buildah", *store, *map(str, words)], capture_output=True,
                                text=True, check=False, cwd=BUILD / "containers")
        if result.returncode != 0:
            raise AssertionError(f"buildah {words}: {result.stdout}{result.stderr}")
        return result.stdout.strip()

    def enter(self, kind):
        """The image's configuration, and its root as a container of it has it."""
        config = json.loads(self.buildah("inspect", "--type", "image", f"longwire-{kind}"))
        container = self.buildah("from", "--pull-never", f"longwire-{kind}")
        self.addCleanup(self.buildah, "rm", container)
        root = pathlib.Path(self.buildah("mount", container))
        return config["OCIv1"]["config"], root

    @staticmethod
    def command(root, words, mounts=()):
        """Runs the words as the image's user in its root, with a /proc and devices."""
        script = [f"mount --bind {source} {root}{target}" for source, target in mounts]
        script += [f"mkdir -p {root}/proc {root}/dev", f"mount -t proc proc {root}/proc",
                   f"mount --rbind /dev {root}/dev",
                   f"exec chroot --userspec={USER}:{USER} --groups= {root} " + shlex.join(words)]
        return ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-ec",
                "\n".join(script)]

    def test_they_are_small_and_of_nobody(self):
        for kind in KINDS:
            config, root = self.enter(kind)
            self.assertEqual(f"{USER}:{USER}", config["User"])
            self.assertFalse((root / "var/lib/dpkg").exists())
            writable = [path for path in root.rglob("*") if not path.is_symlink()
                        and path.stat().st_uid == USER]
            self.assertLessEqual({str(path.relative_to(root)) for path in writable},
                                 {"run/longwire", "var/cache/longwire", "var/lib/longwire", "tmp"})
            setuid = [path for path in root.rglob("*") if path.is_file()
                      and not path.is_symlink() and path.stat().st_mode & 0o6000]
            self.assertEqual([], setuid)

    def test_a_program_with_the_client_of_one_at_the_server_of_the_other(self):
        port = server.free_port()
        config, root = self.enter("server")
        (root / "etc/longwire/longwired.yaml").write_text(
            f"driver: software\nlisten: 127.0.0.1:{port}\n")
        log = self.folder / "log"
        environment = dict(one.split("=", 1) for one in config["Env"])
        with open(log, "w") as out:
            daemon = subprocess.Popen(self.command(root, config["Entrypoint"] + config["Cmd"]),
                                      env={"PATH": os.environ["PATH"], **environment}, stdout=out,
                                      stderr=out, stdin=subprocess.DEVNULL)
        self.addCleanup(daemon.wait)
        self.addCleanup(daemon.kill)
        server.wait_for(lambda: "ready, version" in log.read_text() or daemon.poll() is not None,
                        30, "the server")
        self.assertIsNone(daemon.poll(), log.read_text())
        # The init container.
        config, root = self.enter("client")
        target = self.folder / "target"
        target.mkdir()
        os.chown(target, USER, USER)
        (root / "target").mkdir()
        subprocess.run(self.command(root, config["Entrypoint"], [(target, "/target")]), check=True)
        self.assertTrue((target / "lib/longwire/libcuda.so.1").exists())
        app = BUILD / "tests" / "apps" / "vector_add.static"
        result = server.run([target / "bin/longwire", "run", "--server", f"127.0.0.1:{port}", "--",
                             app], {"PATH": os.environ["PATH"], "HOME": str(self.folder),
                                    "LONGWIRE_RUNTIME_DIR": str(self.private())})
        self.assertIsNone(programs.what_is_wrong("vector_add", result),
                          f"{result}\n{log.read_text()}")
        self.assertRegex(log.read_text(), r": opened for .*vector_add")

    def private(self):
        folder = self.folder / "links"
        folder.mkdir(mode=0o700)
        return folder


if __name__ == "__main__":
    unittest.main()
