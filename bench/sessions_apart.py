"""Two sessions on a server with two devices: how much more they get done than one.

Kernels of 1.1 ms and of 21 ms, back to back; natively the second program is put on the second
device by hand."""
import statistics

import tenants
from tenants_beside import Native, Remote, calibrate, finish, say, start

SECONDS = 3
ROUNDS = 3


class NativeOn(Native):
    def __init__(self, device):
        self.device = device

    def command(self, tenant, *words):
        return ["env", f"CUDA_VISIBLE_DEVICES={self.device}", *map(str, words)]


def kernels_per_second(sides, load, iterations, raw):
    running = [start(side, "batch", load, "batch", iterations, SECONDS) for side in sides]
    return sum(finish(process, raw)["batch_kernels"] for process in running)


def run(build, driver, raw, out, software_devices=2):
    load = build / "bench" / "tenant_load"
    blocks = {"serving": {"admin": True}, "batch": {}}
    with tenants.TenantServer(blocks, {"placement": "spread"}, driver=driver, build=build,
                              warm_workers=2, software_devices=software_devices) as server:
        remote = Remote(server)
        arrangements = [("longwire", [remote, remote])]
        if driver != "software":
            arrangements.insert(0, ("native", [NativeOn(0), NativeOn(1)]))
        iterations = calibrate(remote, load, raw)
        say(out, f"{'kernels back to back':<28} {'one 1/s':>9} {'two 1/s':>9} {'two/one':>8}")
        for kind, length in (("request", "1.1 ms"), ("batch", "21 ms")):
            for name, sides in arrangements:
                one, two = [], []
                for _ in range(ROUNDS):
                    one.append(kernels_per_second(sides[:1], load, iterations[kind], raw))
                    two.append(kernels_per_second(sides, load, iterations[kind], raw))
                ones, twos = statistics.median(one), statistics.median(two)
                say(out, f"{name + ', ' + length:<28} {ones:9.1f} {twos:9.1f} {twos / ones:8.2f}")
