#!/usr/bin/env python3
"""How long scrapes of a daemon take, from the request to the last byte, with ever more sessions.

Each session is a program of its own, which has used its device and waits.
"""
import argparse
import pathlib
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "e2e"))
import scrape  # noqa: E402
import server  # noqa: E402

SCRAPES = 30
SETTINGS = """metrics: {address}
metrics_per_session: {per_session}
max_sessions: 4096
admission: {{openings_per_second: 10000}}
"""


def measure(address):
    """The least and the median of some scrapes, in milliseconds."""
    times = []
    for _ in range(SCRAPES):
        begun = time.perf_counter()
        scrape.fetch(address)
        times.append(1e3 * (time.perf_counter() - begun))
    return min(times), statistics.median(times)


def run(build, counts, per_session):
    address = f"127.0.0.1:{server.free_port()}"
    settings = SETTINGS.format(address=address, per_session=str(per_session).lower())
    processes = []
    with server.Server(build=build, config=settings, software_memory=60 << 30) as longwire:
        server.wait_for(lambda: "ready" in longwire.log_tail(), 20, "the daemon")
        try:
            for count in counts:
                while len(processes) < count:
                    processes.append(longwire.start("hold_session.static"))
                least, median = measure(address)
                print(f"{count:8} sessions {least:8.2f} ms at least {median:8.2f} ms median",
                      flush=True)
        finally:
            for process in processes:
                process.kill()
                process.communicate()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default=server.build_folder())
    parser.add_argument("--sessions", type=int, nargs="+", default=[0, 100, 200])
    arguments = parser.parse_args()
    for per_session in (False, True):
        print(f"metrics_per_session: {str(per_session).lower()}", flush=True)
        run(arguments.build, arguments.sessions, per_session)


if __name__ == "__main__":
    main()
