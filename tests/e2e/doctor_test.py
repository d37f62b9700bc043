"""longwire doctor comes as far as a program: what makes every program fail is a problem with its
cause and its remedy, whether the server is reached over the network or by its local socket."""
import json
import os
import pathlib
import shutil
import tempfile
import unittest

import keys_server
import server

NOBODY = 65534  # a user who is not the server's


class DoctorTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.longwire = cls.enterClassContext(server.Server())

    def setUp(self):
        # Open to others, so that another user gets as far as this one.
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.folder.chmod(0o755)
        self.servers = (self.longwire.address, f"unix:{self.longwire.door}")

    def doctor(self, to, longwire=None, timeout=60, **variables):
        command = longwire or self.longwire.dist / "bin" / "longwire"
        return server.run([command, "doctor", "--server", to],
                          self.longwire.environment(**variables), timeout)

    def expect_good(self, to, **variables):
        result = self.doctor(to, **variables)
        self.assertEqual((0, ""), (result.code, result.err), result.out)
        self.assertIn("  ok      it loads libcuda.so.1, sees 1 device and copies bytes there and "
                      "back\nall is well\n", result.out)
        return result.out

    def expect_problem(self, cause, remedy, result):
        """That one, and no other."""
        self.assertEqual(1, result.code, result.out)
        lines = result.out.splitlines()
        [problem] = [place for place, line in enumerate(lines) if line.startswith("  PROBLEM ")]
        self.assertIn(cause, lines[problem])
        self.assertRegex(lines[problem + 1], f"^ +remedy: .*{remedy}")
        self.assertEqual("1 problem", lines[-1])

    def test_for_programs(self):
        """All that it says is one object, also when something is wrong."""
        for to, problems in ((self.longwire.address, 0), ("127.0.0.1:1", 1)):
            result = self.longwire.cli("doctor", "--json", "--server", to)
            said = json.loads(result.out)
            self.assertEqual((problems, problems), (result.code, said["problems"]), result.err)
            about = {finding["about"] for finding in said["findings"]}
            self.assertNotIn("", about)
        result = self.longwire.cli("doctor", "--explain", "--json", "cuMemAlloc_v2",
                                   "cuMulticastCreate")
        self.assertEqual([True, False],
                         [one["works"] for one in json.loads(result.out)["functions"]])

    def installed(self):
        """An installation of its own, of links; its parts can be put elsewhere."""
        dist = self.longwire.dist
        for part in ("bin", "lib/longwire"):
            (self.folder / part).mkdir(parents=True)
        shutil.copy(dist / "bin" / "longwire", self.folder / "bin")
        os.symlink(dist / "bin" / "longwire-link", self.folder / "bin" / "longwire-link")
        os.symlink(dist / "lib/longwire/libcuda.so.1", self.library)
        return self.folder / "bin" / "longwire"

    @property
    def library(self):
        return self.folder / "lib/longwire/libcuda.so.1"

    def test_a_good_server(self):
        for to in self.servers:
            self.expect_good(to)

    def test_a_runtime_folder_that_is_not_private(self):
        self.folder.chmod(0o777)
        self.expect_problem(f"every program fails: cannot reach {self.longwire.address}: "
                            f"{self.folder} is not a folder of this user alone",
                            "chmod 700 it if it is this user's, or set LONGWIRE_RUNTIME_DIR",
                            self.doctor(self.servers[0], LONGWIRE_RUNTIME_DIR=self.folder))
        # Programs at the local socket need none.
        self.expect_good(self.servers[1], LONGWIRE_RUNTIME_DIR=self.folder)

    def test_a_runtime_folder_that_cannot_be_made(self):
        for folder in ("/proc/longwire", self.folder / "no" / "such"):
            self.expect_problem(f"{folder} cannot be made: No such file or directory",
                                "set LONGWIRE_RUNTIME_DIR .* to a folder that this user can make",
                                self.doctor(self.servers[0], LONGWIRE_RUNTIME_DIR=folder))

    def test_a_link_that_cannot_be_started(self):
        plain = self.folder / "plain"
        plain.write_text("#!/bin/sh\n")
        plain.chmod(0o644)
        runtime = self.private()
        for link, reason in (("/nonexistent", "No such file or directory"),
                             (plain, "Permission denied")):
            self.expect_problem(f"{link} cannot be started: {reason}",
                                "unset LONGWIRE_LINK, or let it name an installed longwire-link",
                                self.doctor(self.servers[0], LONGWIRE_LINK=link,
                                            LONGWIRE_RUNTIME_DIR=runtime))

    def test_a_link_that_ends_at_once(self):
        self.expect_problem("longwire-link did not start", "unset LONGWIRE_LINK",
                            self.doctor(self.servers[0], LONGWIRE_LINK="/bin/true",
                                        LONGWIRE_RUNTIME_DIR=self.private()))

    def private(self):
        """A runtime folder in which no link runs yet."""
        folder = self.folder / "runtime"
        folder.mkdir(mode=0o700)
        return folder

    def test_a_link_without_the_right_to_run(self):
        longwire = self.installed()
        link = longwire.with_name("longwire-link")
        link.unlink()
        link.write_text("")
        result = self.doctor(self.servers[1], longwire)
        self.expect_problem(f"{link} cannot be used: Permission denied",
                            "install longwire-client on this host again", result)

    def test_a_library_that_is_none(self):
        longwire = self.installed()
        for to in self.servers:
            self.assertEqual(0, self.doctor(to, longwire).code)
        self.library.unlink()
        self.library.write_text("no library")
        for to in self.servers:
            self.expect_problem(f"programs cannot load {self.library}: ",
                                "install longwire-client again", self.doctor(to, longwire))
        self.library.unlink()
        self.expect_problem(f"there is no {longwire.parent}/../lib/longwire/libcuda.so.1",
                            "install longwire-client on this host",
                            self.doctor(self.servers[0], longwire))

    def test_who_hangs_is_ended(self):
        longwire = self.installed()
        self.library.unlink()
        os.mkfifo(self.library)  # nobody writes to it
        self.expect_problem("hung in loading libcuda.so.1 for 20 s", "longwire status",
                            self.doctor(self.servers[1], longwire))

    def test_settings_that_are_wrong(self):
        for to in self.servers:
            for variable, value, cause, remedy in (
                    ("LONGWIRE_DEVICES", "none", "LONGWIRE_DEVICES is 'none'",
                     "correct LONGWIRE_DEVICES"),
                    ("LONGWIRE_WINDOW_BASES", "1000", "no range of addresses is free",
                     "unset LONGWIRE_WINDOW_BASES"),
                    ("CUDA_VISIBLE_DEVICES", "", "cuInit answers CUDA_ERROR_NO_DEVICE (100); "
                     "CUDA_VISIBLE_DEVICES is ''", "unset CUDA_VISIBLE_DEVICES")):
                with self.subTest(variable=variable, to=to):
                    self.expect_problem(cause, remedy, self.doctor(to, **{variable: value}))
        # Ignored settings are reported, too.
        self.assertIn("  note    the library reports: LONGWIRE_COMPRESSION=gzip is not auto",
                      self.doctor(self.servers[0], LONGWIRE_COMPRESSION="gzip").out)
        self.assertEqual(0, self.doctor(self.servers[0], LONGWIRE_TRACE="calls",
                                        LONGWIRE_LOG="1").code)

    def test_too_few_addresses(self):
        command = [self.longwire.dist / "bin" / "longwire", "doctor", "--server", self.servers[1]]
        result = server.run(["/bin/sh", "-c", 'ulimit -v 400000; exec "$0" "$@"', *command],
                            self.longwire.environment())
        self.expect_problem("(ulimit -v)", "raise the limit on addresses", result)

    def test_the_file_client_conf(self):
        """Its words count as those of the environment do."""
        host = self.folder / "etc"
        host.mkdir()
        (host / "client.conf").write_text("LONGWIRE_LINK = /nonexistent\n")
        script = ('mkdir -p /etc/longwire && mount --bind "$0" /etc/longwire && exec "$@"'
                  if os.path.isdir("/etc/longwire") else
                  'mount -t tmpfs none /etc && mkdir /etc/longwire && '
                  'mount --bind "$0" /etc/longwire && exec "$@"')
        command = ["unshare", "--mount", "/bin/sh", "-c", script, host,
                   self.longwire.dist / "bin" / "longwire", "doctor", "--server", self.servers[0]]
        environment = self.longwire.environment(LONGWIRE_RUNTIME_DIR=self.private())
        self.expect_problem("/nonexistent cannot be started", "client.conf",
                            server.run(command, environment))

    def test_another_user_at_the_local_socket(self):
        """A user without access to the socket, and one without a tenant."""
        self.addCleanup(self.longwire.runtime.chmod, 0o700)
        self.longwire.runtime.chmod(0o755)
        command = [self.longwire.dist / "bin" / "longwire", "doctor", "--server", self.servers[1]]
        as_nobody = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
        environment = self.longwire.environment(HOME="/nonexistent")
        remedy = "add .*to identities of a tenant in the server's configuration"
        self.expect_problem("Permission denied", remedy,
                            server.run([*as_nobody, *command], environment))
        os.chmod(self.longwire.door, 0o666)
        self.expect_problem(f"list 'uid:{NOBODY}' at a tenant", remedy,
                            server.run([*as_nobody, *command], environment))


class IdentityTest(unittest.TestCase):
    """A remedy for each cause that lies in who somebody is."""

    @classmethod
    def setUpClass(cls):
        cls.longwire = cls.enterClassContext(keys_server.KeysServer())

    def test_each_has_its_remedy(self):
        longwire = self.longwire
        other = longwire.make_papers(longwire.runtime / "other", ["init"],
                                     ["client", "--name", "alpha"])
        known = longwire.environment_of("alpha")
        for remedy, more in (
                ("get a certificate from whoever has the server's authority",
                 {"LONGWIRE_CERT": "none"}),
                ("name the server's authority by --ca", {"LONGWIRE_CA": str(other / "ca.crt")}),
                ("get a certificate of the authority that the server takes",
                 {"LONGWIRE_CERT": str(other / "alpha.crt"),
                  "LONGWIRE_KEY": str(other / "alpha.key")}),
                ("correct --cert, --key and --ca", {"LONGWIRE_KEY": "/nonexistent.key"}),
                ("ask the server's administrator to list it at a tenant",
                 longwire.environment_of("stranger"))):
            with self.subTest(remedy):
                result = server.run([longwire.dist / "bin" / "longwire", "doctor", "--server",
                                     longwire.address], {**known, **more})
                self.assertEqual(1, result.code, result.out)
                self.assertIn(f"remedy: {remedy}", result.out)


if __name__ == "__main__":
    unittest.main()
