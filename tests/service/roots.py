"""Clean Debian systems that boot on this machine: systemd-nspawn over one read-only folder.

The folder is made once and kept in the build. What a system changes lies in memory. Each has a
network of its own, which reaches the other system's and nothing else.
"""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

TOOLS = {"mmdebstrap": "mmdebstrap", "systemd-nspawn": "systemd-container", "ip": "iproute2",
         "nsenter": "util-linux"}
# Beside what mmdebstrap takes as the smallest system that has apt.
PACKAGES = "systemd,systemd-sysv"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
ADDRESSES = ("10.231.7.1", "10.231.7.2")


def missing_requirement():
    """What keeps systems from booting here, as a sentence; empty if nothing does."""
    if os.geteuid() != 0:
        return "this test boots whole systems: run it as root, on a machine that you can spare"
    missing = sorted({package for tool, package in TOOLS.items() if not shutil.which(tool)})
    return f"tools are missing: apt-get install {' '.join(missing)}" if missing else ""


def enter_own_namespaces():
    """Goes on in namespaces of processes and mounts that end with this process, whatever ends it:
    no system keeps running, nothing stays mounted."""
    mark = "LONGWIRE_TEST_IN_NAMESPACES"
    if mark in os.environ:
        return
    os.environ[mark] = "1"
    os.execvp("unshare", ["unshare", "--mount", "--propagation=private", "--pid", "--fork",
                          "--kill-child", "--mount-proc", sys.executable, *sys.argv])


def wait_for(condition, seconds, what):
    """Waits until condition() is true and returns its value; threefold, for busy machines."""
    seconds *= 3
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


def fetch_dependencies(base, archives, packages, *others):
    """Downloads what the packages, and others of Debian, need and the base has not, while there is
    a network."""
    (archives / "partial").mkdir(parents=True, exist_ok=True)
    call("systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--volatile=overlay",
         f"--directory={base}", f"--bind={archives}:/archives", f"--bind-ro={packages}:/packages",
         "--pipe", "sh", "-c", "apt-get install -qq --download-only --no-install-recommends "
         f"-o Dir::Cache::archives=/archives /packages/*.deb {' '.join(others)}")


def prepare(base, archives, packages, *others):
    """All that has to be fetched; a second run finds it there."""
    make_base(base)
    try:
        fetch_dependencies(base, archives, packages, *others)
    except AssertionError as problem:
        # The mirror has other versions by now than it had when the base was made.
        print(f"made anew: {problem}", flush=True)
        shutil.rmtree(base)
        make_base(base)
        fetch_dependencies(base, archives, packages, *others)


def lay_cable(names):
    """Two network namespaces of these names, one at each end of a cable, with ADDRESSES."""
    pathlib.Path("/run/netns").mkdir(exist_ok=True)
    call("mount", "-t", "tmpfs", "tmpfs", "/run/netns")  # other tests' names are not seen
    for name in names:
        call("ip", "netns", "add", name)
    call("ip", "link", "add", "cable", "netns", names[0], "type", "veth", "peer", "name", "cable",
         "netns", names[1])
    for address, name in zip(ADDRESSES, names):
        call("ip", "-n", name, "address", "add", f"{address}/24", "dev", "cable")
        for device in ("cable", "lo"):
            call("ip", "-n", name, "link", "set", device, "up")


class Root:
    """One system that boots: a copy of the base, on the network of its own name."""

    def __init__(self, name, base, binds):
        self.name = name
        self.binds = binds
        self.console = tempfile.TemporaryFile()
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix=f"{name}-"))
        self.init = 0
        call("mount", "-t", "tmpfs", "tmpfs", self.folder)
        for part in ("changes", "work", "root"):
            (self.folder / part).mkdir()
        call("mount", "-t", "overlay", "overlay", self.folder / "root", "-o",
             f"lowerdir={base},upperdir={self.folder}/changes,workdir={self.folder}/work")

    def __enter__(self):
        self.boot()
        return self

    def __exit__(self, *_):
        if self.nspawn.poll() is None:
            # An end of the first process is the end of all others that it can see.
            os.kill(self.init or self.nspawn.pid, signal.SIGKILL)
            self.nspawn.wait()
        call("umount", self.folder / "root")
        call("umount", self.folder)
        self.folder.rmdir()

    def boot(self):
        self.init = 0
        self.nspawn = subprocess.Popen(
            ["systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--boot",
             f"--machine={self.name}", f"--hostname={self.name}",
             f"--directory={self.folder}/root", f"--network-namespace-path=/run/netns/{self.name}",
             "--console=pipe", *[f"--bind={outside}:{inside}" for outside, inside in self.binds]],
            stdin=subprocess.DEVNULL, stdout=self.console, stderr=self.console)
        try:
            self.init = wait_for(self._find_init, 60, f"{self.name}'s first process")
            wait_for(self._is_up, 120, f"{self.name}'s start")
        except BaseException:
            print(self.console_text())
            raise

    def reboot(self):
        self.try_run("systemctl", "reboot")
        self.nspawn.wait(120)
        self.boot()

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
        home = "/root" if user == "root" else f"/home/{user}"
        variables = [f"PATH={PATH}", f"HOME={home}", "LANG=C.UTF-8",
                     "DEBIAN_FRONTEND=noninteractive", *environment]
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
        """Makes a file there, and the folders that it needs."""
        self.run("install", "-D", "-m", mode, "-o", owner, "/dev/null", path)
        self.change(path, text)

    def add_user(self, name):
        self.run("useradd", "--create-home", name)
        return int(self.run("id", "-u", name))

    def change(self, path, text):
        """Replaces a file's text as a careful editor does: its owner and mode stay."""
        self.run("sh", "-c", f"cat > {path}", text=text)

    def read(self, path):
        return self.run("cat", path)

    def install(self, *names, again=False):
        """Installs packages of ours; what they need was fetched before."""
        packages = " ".join(f"/packages/{name}_*.deb" for name in names)
        self.run("sh", "-c", "apt-get install -qq --no-install-recommends "
                 "-o Dir::Cache::archives=/archives -o Dpkg::Options::=--force-unsafe-io "
                 f"{'--reinstall' if again else ''} {packages}")

    def prepare_to_type(self, app):
        """/work has the packages and the program `app`; apt asks nothing and fetches nothing."""
        self.write("/etc/apt/apt.conf.d/90typed",
                   'APT::Get::Assume-Yes "true";\nAPT::Install-Recommends "false";\n'
                   'Dir::Cache::archives "/archives";\nDPkg::Options "--force-unsafe-io";\n')
        self.run("sh", "-c", f"mkdir /work && ln -s /packages/*.deb /work && ln -s {app} /work/app")

    def journal(self, unit, lines=40):
        return self.try_run("journalctl", "--no-pager", "-n", lines, "-u", unit).stdout

    def property(self, unit, name):
        return self.run("systemctl", "show", "--value", f"--property={name}", unit).strip()
