"""Programs, daemons and wardens of version 13 of the protocol and of this one, mixed. Programs get
their version by a variable (wire/versions.h)."""
import unittest

import programs
import server

BEFORE = 13
OF_BEFORE = {"LONGWIRE_TEST_VERSIONS": BEFORE}


class VersionsTest(unittest.TestCase):
    def start(self, **variables):
        self.longwire = self.enterContext(server.Server(variables=variables))

    def restart_daemon(self, **variables):
        self.longwire.end_daemon()
        self.longwire.variables.pop("LONGWIRE_TEST_VERSIONS", None)
        self.longwire.variables.update(variables)
        self.longwire.start_daemon()

    def expect_pass(self, version, to=None, **environment):
        """A program passes, with this version from end to end."""
        result = self.longwire.run("vector_add.static", server=to, **environment)
        self.assertIsNone(programs.what_is_wrong("vector_add", result), self.longwire.log_tail())
        opened = [line for line in self.longwire.log.read_text().splitlines()
                  if "opened for" in line]
        self.assertTrue(opened[-1].endswith(f", protocol {version}"), opened[-1])

    def test_a_client_of_before(self):
        self.start()
        for to in (None, f"unix:{self.longwire.door}"):
            self.expect_pass(BEFORE, to, **OF_BEFORE)

    def test_a_client_of_now(self):
        self.start()
        self.expect_pass(BEFORE + 1, f"unix:{self.longwire.door}")
        self.expect_pass(BEFORE + 1)

    def test_a_link_of_before_carries_a_program_of_now(self):
        self.start()
        self.expect_pass(BEFORE, **OF_BEFORE)  # its link stays for a while
        self.expect_pass(BEFORE)

    def test_a_server_of_before(self):
        self.start(**OF_BEFORE)
        self.expect_pass(BEFORE)
        self.restart_daemon()  # the warden and its workers still have the older version
        self.expect_pass(BEFORE)
        self.longwire.must_log(f"protocol {BEFORE} is spoken with it")

    def test_a_daemon_of_before_with_a_warden_of_now(self):
        self.start()
        self.restart_daemon(**OF_BEFORE)
        self.expect_pass(BEFORE)

    def test_nothing_in_common(self):
        self.start()
        door = f"unix:{self.longwire.door}"
        for versions, text, who in (("15-16", "protocol 15 to 16", "longwired on the server"),
                                    ("14-13", "which is no range", "Longwire on the client")):
            result = self.longwire.run("vector_add.static", server=door,
                                       LONGWIRE_TEST_VERSIONS=versions)
            self.assertNotEqual(result.code, 0)
            self.assertIn(text, result.err)
            self.assertIn(who, result.err)
        self.expect_pass(BEFORE + 1)

    def test_a_link_too_new_for_the_server(self):
        self.start()
        result = self.longwire.run("vector_add.static", LONGWIRE_TEST_VERSIONS="15-16")
        self.assertNotEqual(result.code, 0)
        self.assertIn("the client speaks protocol 15 to 16, this server protocol 13 to 14: upgrade "
                      "longwired on the server", result.err)
        self.longwire.must_log("the client speaks protocol 15 to 16")


if __name__ == "__main__":
    unittest.main()
