#!/usr/bin/env python3
"""How much the services may do, by systemd's own figure: of the units as they are, without systemd
running."""
import pathlib
import re
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
MOST = {"longwired": 1.5, "longwire-warden": 2.0, "longwire-starter": 4.0, "longwire-signer": 2.0,
        "longwire-web": 2.0}
STARTERS_LINES = 300


class ExposureTest(unittest.TestCase):
    def test_each_service_is_below_its_figure(self):
        services = {path.stem for path in (ROOT / "deploy" / "systemd").glob("*.service")}
        self.assertLessEqual(set(MOST), services)
        for name, most in MOST.items():
            with self.subTest(name):
                done = subprocess.run(
                    ["systemd-analyze", "security", "--offline=true", "--no-pager",
                     ROOT / "deploy" / "systemd" / f"{name}.service"],
                    capture_output=True, text=True, check=False)
                figure = re.search(r"exposure level for \S+: ([\d.]+)", done.stdout)
                self.assertIsNotNone(figure, done.stderr)
                self.assertLessEqual(float(figure[1]), most, done.stdout)

    def test_what_runs_with_privileges_is_small(self):
        lines = sum(len(path.read_text().splitlines())
                    for path in (ROOT / "server" / "starter").glob("*.cc"))
        self.assertLess(lines, STARTERS_LINES)


if __name__ == "__main__":
    unittest.main()
