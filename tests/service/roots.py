"""Clean Debian systems that boot on this machine: systemd-nspawn over one read-only folder.

The folder is made once and kept in the build. What a system changes lies in memory and is gone
when it ends. Each has a network of its own, which reaches the other systems' and nothing else.
"""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time

TOOLS = {"mmdebstrap": "mmdebstrap", "systemd-nspawn": "systemd-container", "ip": "iproute2",
         "nsenter": "util-linux"}
# Beside what mmdebstrap takes as the smallest system that has apt.
PACKAGES = "systemd,systemd-sysv"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
NETWORK = "10.231.7"


def missing_requirement():
    """What keeps systems from booting here, as a sentence; empty if nothing does."""
    if os.geteuid() != 0:
        return "this test boots whole systems: run it as root, on a machine that you can spare"
    missing = sorted({package for tool, package in TOOLS.items() if not shutil.which(tool)})
    return f"tools are missing: apt-get install {' '.join(missing)}" if missing else ""


def wait_for(condition, seconds, what):
    """Waits until condition() is true and returns its value."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not within {seconds} s")
        time.sleep(0.05)
    return value


def call(*command, **options):
    """Runs a command of this machine; what it says is shown only if it fails."""
    result = subprocess.run([str(word) for word in command], text=True, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    if result.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))}: {result.returncode}\n{result.stdout}")
    return result.stdout


def apt_settings():
    """How this machine reaches its mirror: sources and proxies."""
    places = ["/etc/apt/sources.list.d/debian.sources", "/etc/apt/sources.list"]
    sources = [place for place in places if os.path.exists(place) and os.path.getsize(place)]
    proxies = [line for line in call("apt-config", "dump").splitlines()
               if line.startswith("Acquire::http") and "::Proxy" in line]
    return sources[:1], proxies


def make_base(folder):
    """The system that all others are copies of. Its packages are of this machine's release, like
    the libraries that Longwire was built with."""
    if folder.exists():
        return
    release = call("sh", "-c", ". /etc/os-release; echo $VERSION_CODENAME").strip()
    sources, proxies = apt_settings()
    new = folder.with_suffix(".new")
    shutil.rmtree(new, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    call("mmdebstrap", "--quiet", "--mode=root", "--variant=minbase", f"--include={PACKAGES}",
         "--skip=cleanup/apt/lists", "--dpkgopt=force-unsafe-io",
         "--customize-hook=rm -f $1/etc/hostname",
         *[f"--aptopt={proxy}" for proxy in proxies], release, new, *sources)
    new.rename(folder)


def fetch_dependencies(base, archives, packages):
    """Downloads what the packages need and the base has not, while there is a network."""
    (archives / "partial").mkdir(parents=True, exist_ok=True)
    call("systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--volatile=overlay",
         f"--directory={base}", f"--bind={archives}:/archives", f"--bind-ro={packages}:/packages",
         "--pipe", "sh", "-c", "apt-get install -qq --download-only --no-install-recommends "
         "-o Dir::Cache::archives=/archives /packages/*.deb")


class Networks:
    """Network namespaces in pairs: two ends of one cable, 10.231.7.1 and .2."""

    def __init__(self):
        self.names = [f"longwire-{os.getpid()}-{number}" for number in (1, 2)]

    def __enter__(self):
        for name in self.names:
            call("ip", "netns", "add", name)
        call("ip", "link", "add", "cable", "netns", self.names[0], "type", "veth", "peer", "name",
             "cable", "netns", self.names[1])
        for number, name in enumerate(self.names, 1):
            call("ip", "-n", name, "address", "add", f"{NETWORK}.{number}/24", "dev", "cable")
            for device in ("cable", "lo"):
                call("ip", "-n", name, "link", "set", device, "up")
        return self

    def __exit__(self, *_):
        for name in self.names:
            subprocess.run(["ip", "netns", "delete", name], check=False)


class Root:
    """One booted system."""

    def __init__(self, name, base, network, binds):
        self.name = name
        self.console = tempfile.TemporaryFile()
        self.nspawn = subprocess.Popen(
            ["systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--volatile=overlay",
             "--boot", f"--machine={name}", f"--hostname={name}", f"--directory={base}",
             f"--network-namespace-path=/run/netns/{network}", "--console=pipe",
             *[f"--bind={outside}:{inside}" for outside, inside in binds]],
            stdin=subprocess.DEVNULL, stdout=self.console, stderr=self.console)
        self.init = 0

    def __enter__(self):
        try:
            self.init = wait_for(self._find_init, 60, f"{self.name}'s first process")
            wait_for(self._is_up, 120, f"{self.name}'s start")
        except BaseException:
            print(self.console_text())
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.init:
            os.kill(self.init, signal.SIGKILL)  # and with it all others of its process namespace
        else:
            self.nspawn.terminate()
        self.nspawn.wait()

    def _find_init(self):
        if self.nspawn.poll() is not None:
            raise AssertionError(f"systemd-nspawn ended with {self.nspawn.returncode}")
        pid = self.nspawn.pid
        for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            # Others help to set it up and end.
            status = pathlib.Path(f"/proc/{child}/status").read_text()
            if re.search(r"^NSpid:.*\t1$", status, re.M):
                return int(child)
        return 0

    def _is_up(self):
        state = self.try_run("systemctl", "is-system-running").stdout.strip()
        return state in ("running", "degraded")

    def console_text(self):
        self.console.seek(0)
        return self.console.read().decode(errors="replace")[-4000:]

    def try_run(self, *command, timeout=120, user="root", environment=(), text=""):
        """Runs a command inside; the result has returncode and stdout, with stderr in it."""
        variables = [f"PATH={PATH}", "LANG=C.UTF-8", "DEBIAN_FRONTEND=noninteractive", *environment]
        as_user = [] if user == "root" else ["runuser", "-u", user, "--"]
        return subprocess.run(
            ["nsenter", f"--target={self.init}", "--mount", "--uts", "--ipc", "--net", "--pid",
             "--root", "--wd", "env", "-i", *variables, *as_user, *map(str, command)],
            input=text, text=True, errors="replace", timeout=timeout,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)

    def run(self, *command, **options):
        result = self.try_run(*command, **options)
        if result.returncode != 0:
            raise AssertionError(f"{self.name}: {' '.join(map(str, command))}: "
                                 f"{result.returncode}\n{result.stdout}")
        return result.stdout

    def refuses(self, sentence, *command, **options):
        """The command has to fail and to say this."""
        result = self.try_run(*command, **options)
        if result.returncode == 0 or sentence not in result.stdout:
            raise AssertionError(f"{self.name}: {' '.join(map(str, command))}: expected a failure "
                                 f"with '{sentence}': {result.returncode}\n{result.stdout}")
        return result.stdout

    def write(self, path, text, mode="0644", owner="root"):
        """Makes a file there."""
        self.run("install", "-D", "-m", mode, "-o", owner, "/dev/null", path)
        self.change(path, text)

    def change(self, path, text):
        """Replaces a file's text as a careful editor does: its owner and mode stay."""
        self.run("sh", "-c", f"cat > {path}", text=text)

    def read(self, path):
        return self.run("cat", path)

    def install(self, *names):
        """Installs packages of ours; what they need was fetched before."""
        self.run("sh", "-c", "apt-get install -qq --no-install-recommends "
                 "-o Dir::Cache::archives=/archives -o Dpkg::Options::=--force-unsafe-io "
                 + " ".join(f"/packages/{name}_*.deb" for name in names))

    def journal(self, unit, lines=40):
        return self.try_run("journalctl", "--no-pager", "-n", lines, "-u", unit).stdout

    def property(self, unit, name):
        return self.run("systemctl", "show", "--value", f"--property={name}", unit).strip()
