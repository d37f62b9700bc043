#!/usr/bin/env python3
"""Every command's help, manual page and completions in three shells have the same words."""
import gzip
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import server

BUILD = server.build_folder()
LONGWIRE = BUILD / "dist" / "bin" / "longwire"
PAGES = BUILD / "pages"
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "deploy" / "pages"))
import make_pages  # noqa: E402

BASH = r"""
source "$1"; shift
while read -r line; do
  read -ra COMP_WORDS <<<"$line"
  COMP_WORDS+=("$last"); COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
  _longwire; echo "${COMPREPLY[*]}"
done
"""
# What _describe would show: the completion's own functions, without a terminal.
ZSH = r"""
compdef() { :; }
_describe() {
  for entry in ${(P)@[-1]}; do print -rn -- "${entry%%:*} "; done
}
_files() { :; }
_normal() { :; }
functions[complete_longwire]="$(<$1)"
shift
while read -r line; do
  words=(${=line} "$last"); CURRENT=$#words
  complete_longwire; print
done
"""
FISH = r"""
source $argv[1]
while read -l line
    echo (complete -C "$line $last" | string split -f1 \t)
end
"""

NO_JSON = ["completion", "config default", "policy test", "probe", "run", "trace"]


def options_of(text):
    """Those that begin a line."""
    found = set()
    for line in re.findall(r"^  ((?:--?[\w-]+(?:, )?)+)", text, re.M):
        found |= set(line.split(", "))
    return found


class CommandPagesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.home = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="longwire-test-"))
        cls.helps = dict(make_pages.walk(LONGWIRE, ("longwire",)))
        cls.assertGreater(cls(), len(cls.helps), 20)

    def ask(self, shell, script, file, last):
        """What each command's completion offers behind it."""
        answer = subprocess.run([*shell, script, *(["-"] if shell[0] == "bash" else []), file],
                                input="".join(" ".join(path) + "\n" for path in self.helps),
                                env={"PATH": "/usr/bin:/bin", "HOME": self.home, "last": last},
                                text=True, capture_output=True, timeout=60)
        self.assertEqual((0, ""), (answer.returncode, answer.stderr))
        lines = answer.stdout.split("\n")[:-1]
        self.assertEqual(len(self.helps), len(lines), answer.stdout)
        return {path: set(line.split()) for path, line in zip(self.helps, lines)}

    def check_shell(self, shell, script, name, prefix="-"):
        file = PAGES / "completions" / name
        options = self.ask(shell, script, file, prefix)
        commands = self.ask(shell, script, file, "")
        for path, text in self.helps.items():
            with self.subTest(path=path):
                wanted = {one for one in options_of(text) if one.startswith(prefix)}
                self.assertEqual(wanted, {one for one in options[path] if one.startswith(prefix)})
                below = set(make_pages.commands_of(text))
                self.assertLessEqual(below, commands[path])

    def test_bash(self):
        self.check_shell(["bash", "-c"], BASH, "longwire")

    def test_zsh(self):
        self.check_shell(["zsh", "-f", "-c"], ZSH.replace("$1", "$0").replace("shift\n", ""),
                         "_longwire")

    def test_fish(self):
        self.check_shell(["fish", "--no-config", "-c"], FISH, "longwire.fish", "--")

    def test_manual_pages(self):
        for path, text in self.helps.items():
            packed = (PAGES / "man1" / f"{'-'.join(path)}.1.gz").read_bytes()
            plain = re.sub(r"\\f[BR]", "", gzip.decompress(packed).decode()).replace("\\-", "-")
            with self.subTest(path=path):
                found = set()
                for line in re.findall(r"^\.TP\n((?:--?[\w-]+(?:, )?)+)", plain, re.M):
                    found |= set(line.split(", "))
                self.assertEqual(options_of(text), found)
                for name in make_pages.commands_of(text):
                    self.assertRegex(plain, rf"(?m)^\.TP\n{name}$")
        rendered = subprocess.run(["man", "--warnings", "-l", PAGES / "man8" / "longwired.8.gz"],
                                  capture_output=True, text=True, timeout=60)
        self.assertEqual((0, ""), (rendered.returncode, rendered.stderr))
        self.assertIn("--config", rendered.stdout)

    def test_what_programs_read(self):
        version = json.loads(subprocess.run([LONGWIRE, "version", "--json"], check=True,
                                            capture_output=True, text=True).stdout)
        self.assertEqual({"version", "oldest_protocol", "newest_protocol"}, set(version))
        checked = subprocess.run([LONGWIRE, "config", "check", "--json", "/dev/null"], check=True,
                                 capture_output=True, text=True).stdout
        self.assertEqual({"file": "/dev/null", "problems": [], "warnings": []}, json.loads(checked))

    def test_every_command_has_a_form_for_programs(self):
        """But for those whose output is another program's, a script or a file."""
        below = {path[:-1] for path in self.helps}
        leaves = {" ".join(path[1:]): text for path, text in self.helps.items()
                  if path not in below and path[0] == "longwire" and path[1:]}
        without = sorted(name for name, text in leaves.items()
                         if "--json" not in options_of(text))
        self.assertEqual(sorted(NO_JSON), without)

    def test_certificates(self):
        def said(*words):
            done = subprocess.run([LONGWIRE, "cert", *words, "--json"], check=True,
                                  env={"HOME": self.home}, capture_output=True, text=True)
            return json.loads(done.stdout)
        folder = f"{self.home}/authority"
        made = said("init", "--dir", folder)
        self.assertEqual((f"{folder}/ca.crt", f"{folder}/ca.key"),
                         (made["certificate"], made["key"]))
        made = said("server", "--dir", folder, "--name", "gpu1.example.org,10.0.0.1")
        self.assertEqual(f"{folder}/ca.crt", made["authority"])
        [shown] = said("show", made["certificate"])["certificates"]
        self.assertEqual((["gpu1.example.org", "10.0.0.1"], True, True, made["valid_until"]),
                         (shown["reached_by"], shown["for_server"], shown["for_client"],
                          shown["valid_until"]))
        [shown] = said("show", said("peer", "--dir", folder,
                                    "--name", "etcd1")["certificate"])["certificates"]
        self.assertEqual((["etcd1"], True, True),
                         (shown["reached_by"], shown["for_server"], shown["for_client"]))
        said("client", "--dir", folder, "--name", "alice")
        for before in (False, True):
            [revoked] = said("revoke", "alice", "--dir", folder)["certificates"]
            self.assertEqual(("alice", before), (revoked["name"], revoked["revoked_before"]))

    def test_a_configuration(self):
        file = pathlib.Path(self.home) / "longwired.yaml"
        file.write_text("tenants: [{name: research, priority: latency_critical, memory: 3GiB}]\n")
        done = subprocess.run([LONGWIRE, "config", "show", "--effective", "--json", file],
                              check=True, capture_output=True, text=True)
        shown = json.loads(done.stdout)
        self.assertEqual("least_loaded", shown["placement"])
        [tenant] = shown["tenants"]
        self.assertEqual(("research", "latency_critical", 3 << 30),
                         (tenant["name"], tenant["priority"], tenant["memory"]))


if __name__ == "__main__":
    unittest.main()
