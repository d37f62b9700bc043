"""One probe for each key that a reload changes: sees by what the server then does that the new
value is in force. Each is a test of reload_keys_test.py, with the settings of the start before."""
import ssl
import time

import proxy
import scrape
import server
from keys_server import MIB
from reload_cases import probe, start, tell


def runs(case, tenant, **more):
    """Whether a program of the tenant gets its device; else what it said."""
    program = case.longwire.program("allocate.static")
    result = case.longwire.run_as(tenant, program, **more)
    return True if result.code == 0 else result.err


@probe("placement")
def place_sessions(case):
    def device():
        before = {session["id"] for session in case.status()["sessions"]}
        start(case, "alpha")
        [new] = [one for one in case.status()["sessions"] if one["id"] not in before]
        return new["seats"][0].get("device", 0)
    case.assertEqual([0, 0], [device(), device()])
    case.longwire.reload(placement="spread")
    case.assertEqual([1, 1, 0], [device(), device(), device()])


@probe("rebalance")
def make_room(case):
    for _ in range(2):
        case.longwire.reload(placement="spread")
        start(case, "alpha")
    case.assertIn("no device has that much", runs(case, "beta", LONGWIRE_MEMORY="480MiB"))
    case.longwire.reload(rebalance=True)
    case.assertEqual(True, runs(case, "beta", LONGWIRE_MEMORY="480MiB"))


@probe("metrics_per_session")
def show_sessions(case):
    def has_sessions():
        return any(name.startswith("longwire_session_bytes_total")
                   for name in scrape.Scrape(case.longwire.metrics).values)
    start(case, "alpha")
    case.assertFalse(has_sessions())
    case.longwire.reload(metrics_per_session=True)
    case.assertTrue(has_sessions())


@probe("max_sessions")
def limit_all_sessions(case):
    start(case, "alpha")
    case.longwire.reload(max_sessions=1)
    case.assertIn("as many as its max_sessions allows", runs(case, "beta"))
    case.longwire.reload(max_sessions=2)
    case.assertEqual(True, runs(case, "beta"))


@probe("compression")
def compress(case):
    """Of a session that runs."""
    case.longwire.reload(compression=False)
    start(case, "alpha", "keep_copying.static", LONGWIRE_COMPRESSION="lz4")

    def figures():
        [session] = case.status()["sessions"]
        return session["bytes_up"], session.get("bytes_saved", 0)
    case.assertEqual(0, figures()[1])
    case.longwire.reload(compression=True)
    server.wait_for(lambda: figures()[1] > MIB, 20, "bytes that were saved")
    case.longwire.reload(compression=False)
    seen = [figures()]

    def moves_plain():
        seen.append(figures())
        return seen[-1][0] > seen[-2][0] + MIB and seen[-1][1] == seen[-2][1]
    server.wait_for(moves_plain, 20, "bytes none of which was saved")


class Gate(proxy.Proxy):
    """A way to the server that can be closed, and opened again at the same place."""

    def shut(self):
        # Else who waits there for a connection would still take one.
        self.listener.shutdown(proxy.socket.SHUT_RDWR)
        self.listener.close()
        self.cut()

    def open(self):
        host, port = self.address.split(":")
        self.listener = proxy.socket.create_server((host, int(port)))
        proxy.threading.Thread(target=self.serve, daemon=True).start()


@probe("resume_grace")
def resume(case):
    """Of a session that runs: the client, too, waits as long as is said now."""
    case.longwire.reload(resume_grace="1s")
    way = Gate(case.longwire.port)
    case.addCleanup(way.close)
    program = start(case, "alpha", "allocate.static", "hold", to=way.address)
    case.longwire.reload(resume_grace="10min")
    case.assertEqual("1048576 cudaSuccess", tell(program, MIB)[0])  # the new terms have arrived
    way.shut()
    time.sleep(2.5)  # more than was said before
    way.open()
    case.assertEqual("1048576 cudaSuccess", tell(program, MIB)[0], case.longwire.log_tail())
    way.shut()
    case.assertEqual(1, len(case.status()["sessions"]))
    case.longwire.reload(resume_grace="100ms")
    server.wait_for(lambda: not case.status()["sessions"], 20, "the end of the session")


@probe("log_level")
def log(case):
    def lines():
        return case.longwire.log.read_text(errors="replace").count("opened for ")
    before = lines()
    case.assertEqual(True, runs(case, "alpha"))
    case.assertEqual(before + 1, lines())
    case.longwire.reload(log_level="error")
    case.assertEqual(True, runs(case, "alpha"))
    case.assertEqual(before + 1, lines())
    case.longwire.reload(log_level="debug")
    case.assertEqual(True, runs(case, "alpha"))
    case.assertEqual(before + 2, lines())


@probe("tls.certificate", "tls.key")
def show_another_certificate(case):
    """The handshake proves that the key is the certificate's."""
    def shown():
        return ssl.get_server_certificate(("127.0.0.1", case.longwire.port)).split()
    papers = case.longwire.make_papers(case.longwire.runtime / "renewed",
                                       ["server", "--name", "127.0.0.1"], from_authority=True)
    case.assertEqual((case.longwire.papers / "127.0.0.1.crt").read_text().split(), shown())
    case.longwire.reload(tls={"certificate": str(papers / "127.0.0.1.crt"),
                              "key": str(papers / "127.0.0.1.key")})
    case.assertEqual((papers / "127.0.0.1.crt").read_text().split(), shown())
    case.assertEqual(True, runs(case, "alpha"))


@probe("tls.authority")
def trust_another_authority(case):
    papers = case.longwire.make_papers(case.longwire.runtime / "other", ["init"],
                                       ["client", "--name", "alpha"])
    others = {"LONGWIRE_CERT": papers / "alpha.crt", "LONGWIRE_KEY": papers / "alpha.key"}

    def others_run():
        environment = {**case.longwire.environment_of("alpha"),
                       **{name: str(file) for name, file in others.items()}}
        return server.run(case.longwire.command(case.longwire.program("allocate.static")),
                          environment)
    case.assertIn("refused this client's certificate", others_run().err)
    case.assertEqual(True, runs(case, "alpha"))
    case.longwire.reload(tls={"authority": str(papers / "ca.crt")})
    case.assertEqual(0, others_run().code)
    # By a new connection, and by one that its link had already.
    case.assertIn("refused this client's certificate", runs(case, "operator"))
    case.assertIn("of an authority that the server does not trust any more", runs(case, "alpha"))
    case.longwire.reload()
    case.assertEqual([True, True], [runs(case, "alpha"), runs(case, "operator")])


@probe("tls.revocations")
def revoke_a_certificate(case):
    papers = case.longwire.make_papers(case.longwire.runtime / "revoking",
                                       ["revoke", case.longwire.papers / "alpha.crt"],
                                       from_authority=True)
    program = start(case, "alpha", "steady.static", "until-error")
    case.longwire.reload(tls={"revocations": str(papers / "revoked.crl")})
    case.assertIn("ERROR 719", program.communicate(timeout=20)[0])
    case.assertIn("was revoked on", runs(case, "alpha"))
    case.assertEqual(True, runs(case, "beta"))
    case.longwire.reload()
    case.assertEqual(True, runs(case, "alpha"))


@probe("tenants.longest_idle", "tenants.longest_session")
def end_sessions_in_time(case):
    """Of sessions that run: one is idle, the other old."""
    programs = {"longest_idle": start(case, "alpha"),
                "longest_session": start(case, "beta", "steady.static", "until-error")}
    case.longwire.reload(tenants={"alpha": {"longest_idle": "1s"},
                                  "beta": {"longest_session": "1s"}})
    for key, program in programs.items():
        case.assertIn(f"({key}: 1s)", program.stderr.readline())


@probe("tenants.name")
def name_a_tenant(case):
    case.longwire.reload(tenants={"alpha": {"name": "renamed", "sessions": 1}})
    start(case, "alpha")
    case.assertIn("the tenant 'renamed' has 1 sessions already", runs(case, "alpha"))


@probe("tenants.trust")
def trust_a_tenant(case):
    """It is only checked: against walls, which are read at the start."""
    said = case.longwire.reload(tenants={"alpha": {"trust": "company"}})
    case.assertIn("tenants: changed", said)
    case.assertEqual(True, runs(case, "alpha"))


@probe("tenants.identities")
def list_identities(case):
    case.assertIn("does not know the identity 'stranger'", runs(case, "stranger"))
    case.longwire.reload(tenants={"alpha": {"identities": ["stranger"]}})
    case.assertEqual(True, runs(case, "stranger"))
    case.assertIn("does not know the identity 'alpha'", runs(case, "alpha"))


@probe("tenants.memory")
def limit_memory(case):
    """Of a session that runs."""
    case.longwire.reload(tenants={"alpha": {"memory": "100MiB"}})
    program = start(case, "alpha", "allocate.static", "hold")
    size = 120 * MIB
    case.assertEqual(f"{size} cudaErrorMemoryAllocation", tell(program, size)[0])
    case.longwire.reload(tenants={"alpha": {"memory": "200MiB"}})
    case.assertEqual(f"{size} cudaSuccess", tell(program, size)[0])
    case.longwire.reload(tenants={"alpha": {"memory": "100MiB"}})
    case.assertEqual(f"{16 * MIB} cudaErrorMemoryAllocation", tell(program, 16 * MIB)[0])


@probe("tenants.sessions")
def limit_sessions(case):
    start(case, "alpha")
    case.longwire.reload(tenants={"alpha": {"sessions": 1}})
    case.assertIn("has 1 sessions already; its limit is 1", runs(case, "alpha"))
    case.longwire.reload(tenants={"alpha": {"sessions": 2}})
    case.assertEqual(True, runs(case, "alpha"))


@probe("tenants.wait")
def wait_by_default(case):
    """What holds is said with each refusal, also to a program that waits."""
    holder = start(case, "alpha")
    case.longwire.reload(tenants={"alpha": {"sessions": 1}})
    case.assertNotIn("waiting: ", runs(case, "alpha"))
    for wait in ("forever", "2min"):
        case.longwire.reload(tenants={"alpha": {"sessions": 1, "wait": wait}})
        waiting = case.longwire.popen("alpha", case.longwire.program("allocate.static"))
        case.addCleanup(waiting.communicate)
        case.addCleanup(waiting.kill)
        case.assertIn("waiting: the tenant 'alpha' has 1 sessions", waiting.stderr.readline())
    case.assertNotIn("waiting: ", runs(case, "alpha", LONGWIRE_WAIT="0"))
    case.longwire.reload(tenants={"alpha": {"sessions": 1}})
    case.assertNotEqual(0, waiting.wait(timeout=20))
    case.longwire.reload(tenants={"alpha": {"sessions": 1, "wait": "2min"}})
    waiting = case.longwire.popen("alpha", case.longwire.program("allocate.static"))
    case.assertIn("waiting: ", waiting.stderr.readline())
    holder.kill()
    out, err = waiting.communicate(timeout=30)
    case.assertEqual(0, waiting.returncode, out + err)


@probe("tenants.devices")
def show_more_devices(case):
    case.assertIn("gets 1 device at most", runs(case, "alpha", LONGWIRE_DEVICES=2))
    case.longwire.reload(tenants={"alpha": {"devices": 2}})
    result = case.longwire.run_as("alpha", case.longwire.program("visible_devices.static"))
    case.assertRegex(result.out, "^devices 2 code 0")


@probe("tenants.bytes_in_flight")
def take_more_in_flight(case):
    def bytes_up(process):
        return sum(session["bytes_up"] for session in case.status()["sessions"]
                   if session["client_pid"] == process.pid)

    def start_copies(limit):
        """Behind work that does not end."""
        case.longwire.reload(tenants={"alpha": {"bytes_in_flight": limit}})
        process = case.longwire.popen("alpha", case.longwire.program("copies_behind.static"), 32,
                                      64, "pageable")
        case.addCleanup(process.communicate)
        case.addCleanup(process.kill)
        server.wait_for(lambda: bytes_up(process) > 0, 20, "its session")
        return process
    small = start_copies("8MiB")
    large = start_copies("4GiB")
    server.wait_for(lambda: bytes_up(large) > 16 * MIB, 20, "bytes beyond the usual limit")
    case.assertLess(bytes_up(small), 8 * MIB)


@probe("tenants.admin")
def let_administer(case):
    command = [case.longwire.dist / "bin" / "longwire", "admin", "reload", "--server",
               case.longwire.address]
    start(case, "beta")

    def asked():
        return server.run(command, case.longwire.environment_of("alpha")).code
    case.assertEqual((1, 0), (asked(), len(case.longwire.status_as("alpha")["sessions"])))
    case.longwire.reload(tenants={"alpha": {"admin": True}})
    case.assertEqual((0, 1), (asked(), len(case.longwire.status_as("alpha")["sessions"])))


@probe("tenants.monitor")
def let_monitor(case):
    """It sees the sessions of all, and opens none."""
    start(case, "beta")
    case.assertEqual((True, 0), (runs(case, "alpha"),
                                 len(case.longwire.status_as("alpha")["sessions"])))
    case.longwire.reload(tenants={"alpha": {"monitor": True}})
    case.assertIn("may read metrics and status only", runs(case, "alpha"))
    case.assertEqual(1, len(case.longwire.status_as("alpha")["sessions"]))


@probe("tenants.memory_reserved")
def reserve_memory(case):
    """A tenant that the file does not have any more leaves no reservation behind."""
    program = start(case, "beta", "allocate.static", "hold")
    size = 300 * MIB

    def lends():
        said = tell(program, size)[0]
        if said == f"{size} cudaSuccess":
            tell(program, "free")
        return said == f"{size} cudaSuccess"
    at_once = {"session_idle": "0", "session_idle_time": "100ms"}
    for last in ({"memory_reserved": "2MiB"}, None):
        case.longwire.reload(tenants={"alpha": {"memory_reserved": "300MiB"}}, memory=at_once)
        server.wait_for(lambda: device(case)["leased"] < 200 * MIB, 20, "what beta has freed")
        case.assertFalse(lends())
        case.longwire.reload(tenants={"alpha": last}, memory=at_once)
        case.assertTrue(lends(), last)


@probe("tenants.pinned_memory")
def share_pinned_memory(case):
    case.longwire.reload(tenants={"local": {"pinned_memory": "0"}})
    case.assertGreater(min(case.longwire.moved()), 10 * MIB)
    case.longwire.reload(tenants={"local": {"pinned_memory": "1GiB"}})
    case.assertEqual(0, case.longwire.moved()[1])


@probe("memory.pooled")
def keep_memory_between_sessions(case):
    case.assertEqual(True, runs(case, "alpha"))
    case.longwire.reload(memory={"pooled": "0"})
    server.wait_for(lambda: idle(case) == 0, 20, "what was kept to go")
    case.longwire.reload()
    case.assertEqual(True, runs(case, "alpha"))
    server.wait_for(lambda: idle(case) > 0, 20, "something that is kept")


@probe("memory.prepared")
def prepare_memory(case):
    case.longwire.reload(memory={"pooled": "0"})
    server.wait_for(lambda: idle(case) == 0, 20, "what was kept to go")
    case.longwire.reload(memory={"prepared": "64MiB"})
    server.wait_for(lambda: idle(case) >= 64 * MIB, 20, "memory that is ready")


def device(case):
    return case.status()["devices"][0]


def idle(case):
    return device(case).get("idle", 0)


def expect_given_back(case, before, after):
    """A session keeps what it has freed by the first settings, and gives it back by the others."""
    case.longwire.reload(memory=before)
    program = start(case, "alpha", "allocate.static", 300 * MIB, "hold")
    case.assertEqual(1, len(tell(program, "free")))
    case.assertGreaterEqual(device(case)["leased"], 300 * MIB)
    case.longwire.reload(memory=after)
    server.wait_for(lambda: device(case)["leased"] < 200 * MIB, 20, "what is not used")


@probe("memory.session_idle")
def let_sessions_keep_less(case):
    expect_given_back(case, {"session_idle": "400MiB", "session_idle_time": "100ms"},
                      {"session_idle": "0", "session_idle_time": "100ms"})


@probe("memory.session_idle_time")
def let_sessions_keep_for_less_time(case):
    expect_given_back(case, {"session_idle": "0", "session_idle_time": "1h"},
                      {"session_idle": "0", "session_idle_time": "100ms"})


@probe("memory.swap_host_memory")
def move_memory(case):
    programs = [start(case, name, "allocate.static", "hold") for name in ("alpha", "beta")]
    size = 300 * MIB
    case.assertEqual(f"{size} cudaSuccess", tell(programs[0], size)[0])
    case.assertEqual(f"{size} cudaErrorMemoryAllocation", tell(programs[1], size)[0])
    case.longwire.reload(memory={"swap_host_memory": "512MiB"})
    server.wait_for(lambda: device(case).get("swap_host_memory", 0) == 512 * MIB, 20,
                    "the host's memory")
    case.assertEqual(f"{size} cudaSuccess", tell(programs[1], size)[0])

