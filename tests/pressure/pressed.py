"""Servers and programs whose system refuses something, for as long as a test wants it to."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import server  # noqa: E402

TABLE = 4096  # bytes: refuse.cc


class PressedServer(server.Server):
    """Its processes, and the links of its programs, ask a table whether the system refuses a call
    (refuse.cc)."""

    def __init__(self, **options):
        super().__init__(**options)
        self.refuse = self.build / "tests" / "pressure" / "librefuse.so"

    def __enter__(self):
        # The folder is made by the first of the two; both need what lies in it.
        self.preload = {"LD_PRELOAD": self.refuse}
        self.variables = {**self.variables, **self.preload}
        return super().__enter__()

    def _start(self, name, *arguments):
        self.prepare()
        # A worker behind walls sees neither the library nor the table.
        walls = ("--walls", "shared_uid") if name == "longwire-warden" else ()
        super()._start(name, *arguments, *walls)

    def prepare(self):
        self.table = self.runtime / "refused"
        if self.table.exists():
            return
        self.relieve()
        self.variables["LW_REFUSE"] = self.table
        self.preload["LW_REFUSE"] = self.table
        self.link = self.runtime / "link"
        self.link.write_text(f"#!/bin/sh\nLD_PRELOAD={self.refuse} LW_REFUSE={self.table} "
                             f"exec {self.dist}/bin/longwire-link \"$@\"\n")
        self.link.chmod(0o755)

    def press(self, *lines):
        """Each line: PROGRAM CALL ERRNO PART."""
        text = "".join(f"{line}\n" for line in lines).encode()
        # In one write, in place: who has mapped it never sees half of it.
        with open(self.table, "r+b" if self.table.exists() else "wb", buffering=0) as file:
            file.write(text.ljust(TABLE, b"\0"))

    def relieve(self):
        self.press()

    def environment(self, **more):
        return super().environment(**{"LONGWIRE_LINK": self.link, **more})

    def cause_of(self, test, *words, server=None, name="vector_add.static", **variables):
        """A program that must fail within its time, with one sentence; it has these words."""
        result = self.run(name, server=server, **variables)
        test.assertEqual(1, result.code, (result, self.log_tail()))
        test.assertLess(result.seconds, 15, result)
        lines = result.err.strip().splitlines()
        test.assertEqual(1, len(lines), result)
        for word in words:
            test.assertIn(word, lines[0])
        return lines[0]
