#!/usr/bin/env python3
"""A worker in an attacker's hands, which sends nonsense to keeper, daemon and warden: these and a
neighbour's programs go on as if nothing were, and all memory comes back.

usage: worker_test.py [--long] [--seed N]
The seed is printed. hostile_worker.py says what such a worker does.
"""
import argparse
import os
import pathlib
import random
import re
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import hostile_client  # noqa: E402
import neighbour  # noqa: E402
import server  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
PROGRAMS, LONG_PROGRAMS = 4, 400
SEED = "CUDA_DEVICE_MAX_CONNECTIONS"  # a variable that reaches a worker
ENDS = re.compile(r"(longwired|keeper|longwire-warden).*(died of|was killed|AddressSanitizer)")


class HostileServer(server.Server):
    """Its worker's program is one of ours if the session's variable says so."""

    def __enter__(self):
        result = super().__enter__()
        self.runtime.chmod(0o755)
        return result

    def _start(self, name, *arguments):
        if name == "longwire-warden":
            self.replace_worker()
        super()._start(name, *arguments)

    def replace_worker(self):
        """A folder of programs as the warden wants it: it looks beside its own file."""
        real = self.dist
        self.dist = self.runtime / "dist"
        shutil.copytree(real, self.dist, copy_function=os.symlink)
        (self.dist / "bin" / "longwire-warden").unlink()
        shutil.copy(real / "bin" / "longwire-warden", self.dist / "bin")
        worker = self.dist / "bin" / "longwire-worker"
        worker.unlink()
        worker.write_text(f"""#!/bin/sh
[ -z "${SEED}" ] && exec {real}/bin/longwire-worker "$@"
exec {sys.executable} {HERE}/hostile_worker.py {real}/bin/longwire-worker "$@"
""")
        worker.chmod(0o755)


def attack(longwire, seeds):
    """Programs by the network, whose logs the daemon reads, and by the local socket."""
    for seed in seeds:
        if seed % 2:
            longwire.run("vector_add.static", timeout=10, **{SEED: seed})
            continue
        try:
            client = hostile_client.Client(longwire.door, longwire.build,
                                           environment=(f"{SEED}={seed}",))
        except OSError:
            continue  # its worker's reply was refused
        if client.code == 0:
            list(client.messages(4))
        client.close()


def expect_all_alive(longwire, before):
    now = longwire.processes()
    for name in ("longwired", "longwire-warden", "longwire-keeper"):
        if now[name] != before[name]:
            raise AssertionError(f"{name}: {before[name]} became {now[name]}\n"
                                 + longwire.log_tail(60))
    if end := ENDS.search(longwire.log.read_text(errors="replace")):
        raise AssertionError(f"{end[0]}\n{longwire.log_tail(60)}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--seed", type=int, help="1; with --long another one each time")
    arguments = parser.parse_args()
    if arguments.seed is None:
        arguments.seed = int.from_bytes(os.urandom(3), "little") if arguments.long else 1
    print(f"seed {arguments.seed}", flush=True)
    choose = random.Random(arguments.seed)
    count = LONG_PROGRAMS if arguments.long else PROGRAMS
    seeds = [2 * choose.randrange(1 << 30) + index % 2 for index in range(count)]
    with HostileServer() as longwire:
        neighbour.run_for(longwire, 0, least=1)
        before = longwire.processes()
        with neighbour.beside(longwire) as beside:
            attack(longwire, seeds)
            programs = beside.count_right()
        expect_all_alive(longwire, before)
        neighbour.run_for(longwire, 0, least=1)
        server.wait_for(longwire.is_unused, 20, "the hostile workers' memory")
        expect_all_alive(longwire, before)
    print(f"{count} hostile workers; {programs} programs of a neighbour's beside them")


if __name__ == "__main__":
    main()
