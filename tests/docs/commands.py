"""The commands in the pages, and what becomes of each: it is run as it stands, another test does
what it says, or there is a reason why none does."""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMAND = re.compile(r"(longwired?|longwire-\w+|\./dev|apt|install|systemctl|journalctl|tar|curl"
                     r"|cp|cat|python3|ctest|ninja|podman|docker|jupyter|sbatch|kubectl|for|source"
                     r"|export|echo|mkdir|(build|bench|tests|deploy)/\S+|~/\S+"
                     r"|(LONGWIRE_|LD_)\w+=\S+) ")


def pages():
    return ["README.md", "CONTRIBUTING.md", "deploy/README.md",
            *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").glob("*.md")),
            "docs/recipes/README.md"]


def blocks(page):
    """What stands between fences."""
    within = None
    for line in (ROOT / page).read_text().splitlines(keepends=True):
        if not line.lstrip().startswith("```"):
            if within is not None:
                within += line
        elif within is None:
            within = ""
        else:
            yield within
            within = None


def commands(page):
    """The lines between fences that are commands, without remarks behind them; a loop is one."""
    for block in blocks(page):
        block = re.sub(r"^for .*?^done", lambda loop: loop.group().replace("\n", " "), block,
                       flags=re.M | re.S)
        for line in block.replace("\\\n", " ").splitlines():
            line = re.sub(r"\s+#.*$", "", line).strip() + " "
            if COMMAND.match(line) and "──" not in line:
                yield re.sub(r"\s+", " ", line).strip()


# What stands for something else.
STANDS_FOR = {
    "HOST:PORT": "127.0.0.1:7411", "PROGRAM": "./app", "gpu1:7411": "gpu1.example.org:7411",
    "longwire cert show FILE": "longwire cert show ~/.config/longwire/authority/ca.crt",
    "longwire config check FILE": "longwire config check longwired.yaml",
    "longwire config show --effective FILE": "longwire config show --effective longwired.yaml",
    "longwire config check /etc/longwire/longwired.yaml": "longwire config check longwired.yaml",
    "/etc/longwire/": "etc/",
}
# What a reader has done before, by command.
BEFORE = {
    ("docs/install.md", "longwired --config longwired.yaml"): """
cd ~/.config/longwire/authority
printf 'listen: 0.0.0.0:7411\\ndriver: software\\ntls: {certificate: %s/gpu1.example.org.crt,
      key: %s/gpu1.example.org.key, authority: %s/ca.crt}
tenants: [{name: all, identities: [alice]}]\\n' $PWD $PWD $PWD > ~/longwired.yaml
cp alice.crt ~/.config/longwire/client.crt; cp ca.crt ~/.config/longwire/
install -m 600 alice.key ~/.config/longwire/client.key""",
    ("docs/debugging.md",
     "LONGWIRE_LINK=/tmp/link-with-log longwire run --server HOST:PORT -- ./app"):
        "ln -sf $LONGWIRE_BIN/longwire-link /tmp/link-with-log",
    ("docs/install.md", "tar -xf longwire-client-*-x86_64.tar.xz -C ~/opt"):
        "mkdir -p ~/opt; cp build/relocatable/longwire-client-*.tar.xz .",
    ("docs/web.md", "longwire cert server --name gpu1.example.org --dir /etc/longwire/authority"):
        "mkdir -p etc; longwire cert init --dir etc/authority",
}
# Nothing that a user does with an installed Longwire.
WORK = "it builds or tests this project, as CI does by ./dev test"
NOT_RUN = {
    r"\./dev ": WORK, r"ctest ": WORK, r"ninja ": WORK, r"tests/coverage/": WORK,
    r"podman run ": "no registry is reached: tests/recipes does what it says without podman",
    r"jupyter ": "Jupyter is not installed: tests/recipes starts the kernel by its file",
    r"sbatch ": "it needs a cluster: tests/recipes runs the scripts",
    r"kubectl ": "it needs a cluster: tests/recipes checks the manifests",
    r"systemctl edit longwire-web": "it opens an editor; e2e/web_test.py starts the page with TLS",
    r"cp deploy/recipes/environment/longwire.sh \$CONDA_PREFIX": "conda is not installed",
}
# Another test, and words of it.
TESTED = {
    ("deploy/README.md", r".*"): ("service/run", "page.blocks(PAGE"),
    ("docs/identity.md", r"longwire invite alice"): ("service/run", '"longwire", "join", line'),
    ("docs/identity.md", r"longwire join LINE"): ("service/run", '"longwire", "join", line'),
    ("docs/identity.md", r"longwire admin sessions"): ("hostile/removal_test.py",
                                                      'self.admin("sessions", "--json")'),
    ("docs/identity.md", r"longwire admin kill SESSION"): ("hostile/removal_test.py",
                                                          'self.admin("kill", number)'),
    ("docs/identity.md", r"longwire admin migrate SESSION DEVICE"): ("e2e/moving_test.py",
                                                                    '"migrate"'),
    ("docs/identity.md", r"longwire admin migrate SESSION HOST"): ("e2e/two_servers.py",
                                                                  '"migrate"'),
    ("docs/identity.md", r"longwire admin drain --to HOST"): ("e2e/moving_hosts_test.py",
                                                             '"drain", "--to"'),
    ("docs/identity.md", r"longwire admin drain DEVICE"): ("e2e/moving_test.py",
                                                          '"drain", str(device)'),
    ("docs/identity.md", r"longwire admin checkpoint SESSION FILE"): ("e2e/checkpoint_test.py",
                                                                     '"checkpoint"'),
    ("docs/identity.md", r"longwire admin restore FILE"): ("e2e/checkpoint_test.py", '"restore"'),
    ("docs/several-hosts.md", r"longwire run --across"): ("e2e/several_hosts_test.py", "ACROSS"),
    ("docs/several-hosts.md", r"longwire status --programs"): ("e2e/several_hosts_test.py",
                                                               '"--programs"'),
    ("docs/identity.md", r"longwire admin evict TENANT"): ("hostile/removal_test.py",
                                                          'self.admin("evict", name)'),
    ("docs/identity.md", r"longwire admin drain"): ("hostile/removal_test.py",
                                                   'self.admin("drain", "--off")'),
    ("docs/identity.md", r"longwire admin cordon DEVICE"): ("hostile/removal_test.py",
                                                           'self.admin("cordon", "0", "--off")'),
    ("docs/usage.md", r"longwire usage"): ("e2e/usage_test.py", '"--since"'),
    ("docs/usage.md", r"longwire top$"): ("e2e/top_test.py",
                                         "def test_a_busy_session_and_its_rates"),
    ("docs/usage.md", r"longwire top --server gpu1:7411$"): ("e2e/top_test.py",
                                                            "def test_over_the_network"),
    ("docs/web.md", r"systemctl enable --now longwire-web"): (
        "service/run", '"systemctl", "enable", "--now", WEB'),
    ("docs/pool.md", r"(longwire cert|install|apt) "): ("service/pool_run",
                                                         'page.blocks(PAGE, "Set it up")'),
    ("docs/pool.md", r"longwire run -- ./app"): ("e2e/pool_test.py", "self.hold("),
    ("docs/pool.md", r"longwire run --devices 2"): (
        "e2e/pool_test.py", 'self.hold("c", "--devices", "2", "--memory", "6GiB")'),
    ("docs/pool.md", r"longwire run --devices 4 -- "): ("e2e/pool_across_test.py",
                                                        'self.hold("c", "--devices", "4")'),
    ("docs/pool.md", r"longwire run --devices 4 --same-host"): ("e2e/pool_across_test.py",
                                                                '"--same-host"'),
    ("docs/extending.md", r"longwire advise "): ("e2e/advise_test.py",
                                                 'longwire.cli("advise", "advised*"'),
    ("docs/probes.md", r"longwire probe:? "): ("e2e/probes_test.py", '"lanes.o"'),
    ("docs/extending.md", r"longwire probe launchlate --trace-file "): ("e2e/probes_test.py",
                                                                   '"--trace-file", file'),
    ("docs/pool.md", r"longwire admin (drain|cordon|uncordon) gpu2"): (
        "e2e/pool_drain_test.py", 'self.done("a", "drain", "b", "--deadline", "16s")'),
    ("docs/pool.md", r"longwire top --pool"): ("e2e/pool_top_test.py", '"top", "--pool", "--once"'),
    ("docs/pool.md", r"longwire pool explain"): (
        "e2e/pool_queue_test.py", 'words = ["pool", "explain"'),
    ("docs/policies.md", r"longwire policy test "): ("e2e/policies_test.py", '"policy", "test"'),
    ("docs/policies.md", r"longwire policy load: "): ("e2e/policies_test.py",
                                                      "wait_for, line 6 of refused_loop.c"),
    ("docs/policies.md", r"longwire policy load "): ("e2e/policies_test.py",
                                                     'self.must("load", OBJECTS / "favourite.o")'),
    ("docs/policies.md", r"longwire policy maps "): (
        "e2e/policies_test.py", 'self.must("maps", "favourite", "ranks", "--set"'),
    ("docs/policies.md", r"longwire policy list"): ("e2e/policies_test.py", 'self.must("list")'),
    ("docs/policies.md", r"longwire policy unload "): ("e2e/policies_test.py",
                                                       'self.must("unload", "favourite")'),
    ("docs/recipes/README.md", r"cat deploy/recipes/environment"): ("recipes/recipes_test.py",
                                                                   "def test_a_venv"),
    ("docs/recipes/README.md", r"for kind in client server"): ("containers/images_test.py",
                                                              '"--isolation"'),
}


def other_test(page, command):
    return next((test for (of, pattern), test in TESTED.items()
                 if of == page and re.match(pattern, command)), None)


def reason(command):
    return next((why for pattern, why in NOT_RUN.items() if re.match(pattern, command)), None)
