"""A service's requests beside a hostile neighbour: median and P99 of each kind of attack, as a part
of what they are without one, measured in turn.

The victim comes over TCP with a certificate; the attacker is another tenant, at the local socket
and at the port. On one host the attacker's own processor time counts, too: "busy" is a process that
does nothing but use some, as politely (nice 10) as the attacks."""
import pathlib
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "hostile"))
import door_test  # noqa: E402
import hostile_client  # noqa: E402
import hostile_code  # noqa: E402
import http2  # noqa: E402
import neighbour  # noqa: E402
import port_test  # noqa: E402
import tenants  # noqa: E402
from tenants_beside import Remote, calibrate, figures, say  # noqa: E402

ATTACKER = 5  # its uid
REQUESTS, PAUSE_US = 300, 3000
BEGINS = 1.0  # seconds until an attack is under way
MIB = 1 << 20


def repeat(longwire, use):
    """Sessions of the attacker, one after the other, each for `use`; for ever."""
    while True:
        try:
            with hostile_client.Client(longwire.door, longwire.build) as client:
                if client.code == 0 and client.create_context() == 0:
                    use(client)
                else:
                    time.sleep(0.2)
        except (ConnectionError, TimeoutError, OSError):
            time.sleep(0.2)


def busy(_):
    while True:
        pass


def silent(longwire):
    door_test.hold_silent_connections(longwire.door, 1500)


def descriptors(longwire):
    port_test.hold_connections(longwire.port, 600)


def streams(longwire):
    """Streams that never open a session and ping."""
    while True:
        held = []
        try:
            for _ in range(100):
                connection = http2.Connection(longwire.port, longwire.attackers_tls)
                held.append((connection, [connection.open()
                                          for _ in range(http2.MOST_STREAMS)]))
            for _ in range(6):
                for connection, numbers in held:
                    for number in numbers:
                        connection.ping(number)
                time.sleep(0.5)
        except (OSError, TimeoutError):
            time.sleep(0.1)
        for connection, _ in held:
            connection.close()


def openings(longwire):
    repeat(longwire, lambda client: None)


def images(longwire):
    def load(client):
        for number in range(1000, 3000):
            hostile_code.load_module(client, number, number.to_bytes(8, "little"))
    repeat(longwire, load)


def tokens(longwire):
    def share(client):
        _, chunks = client.lease([2 * MIB] * 96)
        for number in range(20_000):
            client.send("lwShare", hostile_client.list64((chunks * 2)[number % 96:][:64]),
                        thread=1 + number % 8)
            client.skip()
    repeat(longwire, share)


def log(longwire):
    def fail(client):
        block = client.record("lwEventDestroy", hostile_client.u64(77)) * 200
        while True:
            client.up.write(block)
            client.skip()
    repeat(longwire, fail)


def memory(longwire):
    def fill(client):
        client.send("lwModuleLoad", hostile_code.load(7, bytes(1000), on_offer=True))
        record = client.record("lwModuleLoad",
                               hostile_code.load(8, bytes(1000), options=250_000))
        while True:
            client.up.write(record, seconds=2)
    repeat(longwire, fill)


KINDS = [busy, silent, descriptors, streams, openings, images, tokens, log, memory]


def request(longwire, load, iterations, seed, raw):
    """(median, P99) in ms."""
    remote = Remote(longwire)
    done = tenants.server.run(
        remote.command("victim", load, "request", iterations, REQUESTS, PAUSE_US, seed),
        longwire.environment_of("victim"), timeout=120)
    raw.write(done.out)
    if done.code != 0:
        raise SystemExit(f"the victim's program ended with {done.code}: {done.err}"
                         + longwire.log_tail())
    found = figures(done.out)
    return found["request_p50"], found["request_p99"]


def run(build, driver, raw, out, rounds=5):
    blocks = {"victim": {"identities": ["victim", "uid:0"], "admin": True},
              "attacker": {"identities": ["attacker", f"uid:{ATTACKER}"], "memory": "256MiB"}}
    load = build / "bench" / "tenant_load"
    with tenants.TenantServer(blocks, driver=driver, build=build, warm_workers=2) as longwire:
        longwire.runtime.chmod(0o711)  # for the attacker's way to the local socket
        longwire.attackers_tls = http2.tls_context(longwire.papers, "attacker")
        iterations = calibrate_for(longwire, load, raw)
        say(out, f"{'ms':<12} {'alone p50':>10} {'p99':>8} {'beside p50':>11} {'p99':>8} "
                 f"{'p50 ratio':>10} {'p99 ratio':>10}")
        for kind in KINDS:
            measure(longwire, load, iterations, kind, rounds, raw, out)


def calibrate_for(longwire, load, raw):
    class Victim(Remote):
        def environment_of(self, tenant):
            return super().environment_of("victim")
    return calibrate(Victim(longwire), load, raw)["request"]


def measure(longwire, load, iterations, kind, rounds, raw, out):
    alone, beside = [], []
    for seed in range(rounds):
        alone.append(request(longwire, load, iterations, seed, raw))
        with neighbour.attack(kind, longwire, uid=ATTACKER):
            time.sleep(BEGINS)
            beside.append(request(longwire, load, iterations, seed, raw))
        raw.write(f"{kind.__name__} {seed}: alone {alone[-1]}, beside {beside[-1]}\n")
    before, after = ([statistics.median(each) for each in zip(*pairs)] for pairs in (alone, beside))
    ratios = [statistics.median(two[at] / one[at] for one, two in zip(alone, beside))
              for at in (0, 1)]
    say(out, f"{kind.__name__:<12} {before[0]:10.2f} {before[1]:8.2f} {after[0]:11.2f} "
             f"{after[1]:8.2f} {ratios[0]:10.2f} {ratios[1]:10.2f}")
