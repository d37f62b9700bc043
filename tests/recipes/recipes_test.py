"""The recipes of docs/recipes: what their files say is done here, with this build's client."""
import configparser
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
import programs  # noqa: E402
import server  # noqa: E402

RECIPES = ROOT / "deploy" / "recipes"
PAGE = ROOT / "docs" / "recipes" / "README.md"
EXAMPLE = "gpu1.example.org:7411"
LIBRARIES = pathlib.Path("/lib/x86_64-linux-gnu")
# The C library with what it loads by name, and what the program is linked with.
IN_ROOT = ("libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1",
           "libstdc++.so.6", "libgcc_s.so.1")
NOBODY = 65534


class RecipeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.longwire = cls.enterClassContext(server.Server())

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.folder.chmod(0o755)
        self.app = self.longwire.program("vector_add.static")
        bare = self.longwire.environment()
        self.environment = {**bare, "PATH": f"{self.longwire.dist / 'bin'}:{bare['PATH']}"}

    def shell(self, script, *, cwd=None, shell="bash", **variables):
        result = subprocess.run([shell, "-euc", script], cwd=cwd or self.folder, text=True,
                                env={**self.environment, **variables}, capture_output=True,
                                timeout=60, check=False)
        self.assertEqual((0, ""), (result.returncode, result.stderr), result.stdout)
        return result.stdout

    def sessions(self):
        return self.longwire.log.read_text().count(": opened for ")

    def expect_session(self, before):
        """The log has it when its program has ended already."""
        server.wait_for(lambda: self.sessions() == before + 1, 5, "a session on this server")


class ContainerTest(RecipeTest):
    def command(self):
        [text] = re.findall(r"^(podman run .*?)^```", PAGE.read_text(), re.M | re.S)
        return shlex.split(text.replace("\\\n", " "))

    def make_image(self):
        """What an image has that knows nothing of Longwire: a C library and a program."""
        image = self.folder / "image"
        for name in ("tmp", "lib64", "opt", "etc", "proc", LIBRARIES.relative_to("/")):
            (image / name).mkdir(parents=True)
        for name in IN_ROOT:
            shutil.copy(LIBRARIES / name, image / LIBRARIES.relative_to("/"))
        shutil.copy("/lib64/ld-linux-x86-64.so.2", image / "lib64")
        shutil.copy(self.app, image / "app")
        return image

    def test_the_client_comes_in_by_a_volume(self):
        [packed] = (self.longwire.build / "relocatable").glob("longwire-client-*.tar.xz")
        subprocess.run(["tar", "-xf", packed, "-C", self.folder], check=True)
        [client] = self.folder.glob("longwire-client-*")
        papers = self.folder / "papers"
        papers.mkdir()
        outside = {"/opt/longwire": client, "$HOME/.config/longwire": papers}
        image, words = self.make_image(), self.command()
        mounts, variables = [], {"HOME": "/"}
        for option, value in zip(words, words[1:]):
            if option == "--volume":
                source, target, mode = value.split(":")
                self.assertEqual("ro", mode)
                (image / target[1:]).mkdir(parents=True, exist_ok=True)
                mounts.append(f"mount --bind {outside[source]} {image}{target} && "
                              f"mount -o remount,bind,ro {image}{target}")
            if option == "--env":
                name, _, text = value.partition("=")
                variables[name] = text.replace(EXAMPLE, self.longwire.address)
        self.assertEqual(2, len(mounts))
        before = self.sessions()
        inside = words[words.index("IMAGE") + 1:]
        script = " && ".join([f"mount -t proc proc {image}/proc", *mounts,
                              f"exec chroot {image} {shlex.join(inside)}"])
        result = server.run(["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c",
                             script], {"PATH": os.environ["PATH"], **variables})
        self.assertIsNone(programs.what_is_wrong("vector_add", result), result)
        self.expect_session(before)


class EnvironmentTest(RecipeTest):
    def test_a_venv(self):
        activate = RECIPES / "environment" / "longwire.sh"
        self.shell(f"python3 -m venv --without-pip my-venv; cat {activate} >> my-venv/bin/activate")
        before = self.sessions()
        said = self.shell(f". my-venv/bin/activate; {self.app}; deactivate",
                          LONGWIRE_HOME=str(self.longwire.dist),
                          LONGWIRE_SERVER=self.longwire.address)
        self.assertEqual("PASS vector_add\n", said)
        self.expect_session(before)

    def test_it_is_sourced_twice_and_by_a_plain_shell(self):
        script = RECIPES / "environment" / "longwire.sh"
        said = self.shell(f'. {script}; . {script}; echo "$LD_LIBRARY_PATH $LONGWIRE_SERVER"',
                          shell="dash", LD_LIBRARY_PATH="/else")
        self.assertEqual(f"/usr/lib/longwire:/else {EXAMPLE}\n", said)

    def test_it_says_what_longwire_run_does(self):
        """Every variable that `longwire run` sets, but for certificates, which are found."""
        script = RECIPES / "environment" / "longwire.sh"
        own = self.shell("longwire run --server here:1 -- env", LONGWIRE_CERT="none")
        names = ("LONGWIRE_SERVER", "LD_LIBRARY_PATH", "TRITON_LIBCUDA_PATH", "NUMBA_CUDA_DRIVER",
                 "NCCL_P2P_LEVEL")
        ours = self.shell(f". {script}; env", LONGWIRE_HOME=str(self.longwire.dist),
                          LONGWIRE_SERVER="here:1")
        for name in names:
            line = next(line for line in own.splitlines() if line.startswith(f"{name}="))
            self.assertIn(line, ours.splitlines())


class JupyterTest(RecipeTest):
    def test_the_kernel_starts_by_its_argv(self):
        spec = json.loads((RECIPES / "jupyter" / "kernel.json").read_text())
        self.assertLessEqual({"argv", "display_name", "language"}, set(spec))
        connection = self.folder / "connection.json"
        connection.write_text('{"ip": "127.0.0.1"}')
        (self.folder / "ipykernel_launcher.py").write_text(
            "import ctypes, json, sys\n"
            "assert sys.argv[1] == '-f' and json.load(open(sys.argv[2]))['ip'] == '127.0.0.1'\n"
            "cuda = ctypes.CDLL('libcuda.so.1')\ncount = ctypes.c_int()\n"
            "print(cuda.cuInit(0), cuda.cuDeviceGetCount(ctypes.byref(count)), count.value)\n")
        words = [word.replace("{connection_file}", str(connection)).replace(
            EXAMPLE, self.longwire.address) for word in spec["argv"]]
        before = self.sessions()
        said = self.shell(shlex.join(words), PYTHONPATH=str(self.folder))
        self.assertEqual("0 0 1\n", said)
        self.expect_session(before)


class SlurmTest(RecipeTest):
    def setUp(self):
        super().setUp()
        self.jobs = self.folder / "jobs"
        self.job = {"SLURM_JOB_ID": "17", "SLURM_JOB_UID": str(NOBODY),
                    "LONGWIRE_JOB_FOLDERS": str(self.jobs),
                    "LONGWIRE_HOME": str(self.longwire.dist),
                    "LONGWIRE_SERVER": self.longwire.address}

    def slurm(self, script, **variables):
        return self.shell(str(RECIPES / "slurm" / script), **{**self.job, **variables})

    def answer(self, text):
        """A scontrol that says this of the job."""
        tool = self.folder / "scontrol"
        tool.write_text(f"#!/bin/sh\n[ \"$*\" = 'show job 17' ] && echo '{text}'\n")
        tool.chmod(0o755)
        self.environment["PATH"] = f"{self.folder}:{self.environment['PATH']}"

    def test_a_job_from_its_prolog_to_its_epilog(self):
        self.answer("JobId=17 JobName=x\n   TresPerNode=gres/longwire:1\n   Command=/job.sh")
        self.slurm("prolog.sh")
        folder = self.jobs / "17"
        self.assertEqual((NOBODY, 0o700), (folder.stat().st_uid, folder.stat().st_mode & 0o777))
        said = self.slurm("task_prolog.sh")
        task = dict(line.removeprefix("export ").split("=", 1) for line in said.splitlines())
        self.assertEqual({"LONGWIRE_DEVICES", "LONGWIRE_RUNTIME_DIR", "LD_LIBRARY_PATH",
                          "LONGWIRE_SERVER"}, set(task))
        before = self.sessions()
        as_user = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
        result = server.run([*as_user, self.app],
                            {"PATH": os.environ["PATH"], "HOME": "/nonexistent", **task})
        self.assertIsNone(programs.what_is_wrong("vector_add", result), result)
        self.expect_session(before)
        mark = f"LONGWIRE_RUNTIME_DIR={folder}".encode()
        self.assertTrue(self.with_mark(mark), "no link to be ended")
        self.slurm("epilog.sh")
        self.assertFalse(folder.exists())
        server.wait_for(lambda: not self.with_mark(mark), 5, "the links' end")
        self.slurm("epilog.sh")  # of a job that never had any

    @staticmethod
    def with_mark(mark):
        found = []
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if mark in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
            except OSError:
                continue
        return [pid for pid in found if server.is_alive(pid)]

    def test_how_many_devices(self):
        for text, number in (("TresPerNode=gres/longwire:2", "2"), ("TresPerNode=gres:longwire:3",
                             "3"), ("TresPerJob=cpu:4,gres/longwire=4", "4")):
            self.answer(f"JobId=17\n   {text} NodeList=a")
            self.assertIn(f"export LONGWIRE_DEVICES={number}\n", self.slurm("task_prolog.sh"))
        for text in ("TresPerNode=gres/gpu:2", "JobId=17"):
            self.answer(text)
            self.assertEqual("", self.slurm("task_prolog.sh"))

    def test_the_configuration_names_what_there_is(self):
        text = (RECIPES / "slurm" / "slurm.conf").read_text()
        named = re.findall(r"^(\w*Prolog|Epilog)=/etc/slurm/longwire/(\S+)$", text, re.M)
        self.assertEqual(3, len(named))
        for key, script in named:
            self.assertTrue(os.access(RECIPES / "slurm" / script, os.X_OK), key)
        self.assertIn("Name=longwire Count=", (RECIPES / "slurm" / "gres.conf").read_text())


class UserUnitTest(RecipeTest):
    def test_its_command_runs_with_its_variables(self):
        unit = RECIPES / "systemd-user" / "longwire-app.service"
        parser = configparser.RawConfigParser(strict=False)
        parser.optionxform = str
        lines = unit.read_text()
        parser.read_string(lines)
        variables = dict(re.findall(r"^Environment=(\w+)=(.*)$", lines, re.M))
        self.assertEqual({"LONGWIRE_SERVER": EXAMPLE, "LONGWIRE_WAIT": "1h"}, variables)
        (self.folder / "bin").mkdir()
        shutil.copy(self.app, self.folder / "bin" / "app")
        command = parser["Service"]["ExecStart"].replace("%h", str(self.folder)).replace(
            "/usr/bin/", f"{self.longwire.dist}/bin/")
        before = self.sessions()
        self.assertEqual("PASS vector_add\n", self.shell(command, **{
            **variables, "LONGWIRE_SERVER": self.longwire.address}))
        self.expect_session(before)
        copy = self.folder / unit.name
        copy.write_text(re.sub(r"^ExecStart=.*$", f"ExecStart={command}", lines, flags=re.M))
        result = subprocess.run(["systemd-analyze", "verify", "--user", "--man=no", copy],
                                capture_output=True, text=True, check=False, timeout=60,
                                env={**os.environ, "XDG_RUNTIME_DIR": str(self.folder)})
        said = [line for line in result.stderr.splitlines() if unit.name in line]
        self.assertEqual((0, []), (result.returncode, said), result.stderr)


class ContinuousIntegrationTest(RecipeTest):
    def test_the_steps_of_the_job(self):
        """In a network of their own, where the port of the page is free."""
        job = yaml.safe_load((RECIPES / "ci" / "github.yaml").read_text())["jobs"]["test"]
        steps = [step["run"] for step in job["steps"] if "run" in step and "if" not in step]
        self.assertIn("apt-get install -y ./longwire-*.deb", steps[0])
        shutil.copy(self.app, self.folder / "app")
        runtime = self.folder / "runtime"
        runtime.mkdir(mode=0o700)
        script = "set -e; ip link set lo up\n" + "\n".join(
            f"bash -e <<'STEP'\n{step}\nSTEP" for step in steps[1:])
        environment = {**self.environment, **job["env"], "LONGWIRE_RUNTIME_DIR": str(runtime)}
        result = subprocess.run(["unshare", "--net", "--pid", "--fork", "--kill-child",
                                 "--mount-proc", "bash", "-c", script], cwd=self.folder,
                                env=environment, capture_output=True, text=True, timeout=100,
                                check=False)
        log = self.folder / "longwired.log"
        self.assertEqual(0, result.returncode, result.stdout + result.stderr + log.read_text())
        self.assertIn("all is well", result.stdout)
        self.assertEqual("PASS vector_add", result.stdout.splitlines()[-1])


class PageTest(unittest.TestCase):
    def test_it_names_each_file(self):
        text = PAGE.read_text()
        for file in RECIPES.glob("*/*"):
            folder = str(file.parent.relative_to(RECIPES.parents[1]))
            self.assertTrue(file.name in text or f"]({'../../' + folder})" in text, file)


if __name__ == "__main__":
    unittest.main()
