"""The driver's private tables: the page, the library and what the library says about them agree."""
import os
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIBRARY = pathlib.Path(os.environ.get("LONGWIRE_BUILD", ROOT / "build")) / "dist/lib/longwire"
ASK = """
import ctypes, sys
driver = ctypes.CDLL("libcuda.so.1")
for id in sys.argv[1:]:
    table = ctypes.c_void_p(0x77)
    code = driver.cuGetExportTable(ctypes.byref(table), bytes.fromhex(id))
    print(id, code, "a table" if table.value else "null")
"""
UNKNOWN = "00112233445566778899aabbccddeeff"


def ids_in_code():
    text = (ROOT / "client-shim/tables/export_tables.cc").read_text()
    return re.findall(r'Id\("([0-9a-f]{32})"\)', text)


def ids_in_page():
    """First bytes of the ids under each heading."""
    page = (ROOT / "docs/private-tables.md").read_text()
    parts = re.split(r"^## ", page, flags=re.MULTILINE)
    return {part.splitlines()[0]: set(re.findall(r"`([0-9a-f]{8})`", part)) for part in parts[1:]}


def ask(*ids, log="1"):
    return subprocess.run([sys.executable, "-c", ASK, *ids], check=True, text=True,
                          capture_output=True, env={**os.environ, "LONGWIRE_LOG": log,
                                                    "LD_LIBRARY_PATH": str(LIBRARY)})


class PrivateTablesTest(unittest.TestCase):
    def test_the_page_says_of_each_what_the_library_does(self):
        page = ids_in_page()
        found = {"Provided": set(), "Refused": set()}
        for line in ask(*ids_in_code()).stdout.splitlines():
            table, code, pointer = line.split(maxsplit=2)
            self.assertIn((code, pointer), (("0", "a table"), ("500", "null")))
            found["Provided" if code == "0" else "Refused"].add(table[:8])
        self.assertEqual(found["Provided"], page["Provided"])
        self.assertEqual(found["Refused"], page["Refused"])

    def test_an_unknown_one_is_named_once(self):
        result = ask(UNKNOWN, UNKNOWN)
        self.assertEqual(result.stdout.count(f"{UNKNOWN} 500 null"), 2)
        self.assertEqual(result.stderr.count(UNKNOWN), 1)
        self.assertIn("unknown private table", result.stderr)

    def test_nothing_is_said_unless_asked(self):
        self.assertEqual(ask(UNKNOWN, *ids_in_code(), log="").stderr, "")


if __name__ == "__main__":
    unittest.main()
