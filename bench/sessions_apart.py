"""As many sessions as a server has devices: how much more they get done than one.

Kernels of 1.1 ms and of 21 ms, back to back; natively each program is put on a device of its
own by hand."""
import statistics
import subprocess

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


def device_count(driver, software_devices):
    if driver == "software":
        return software_devices
    listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=True)
    return len(listed.stdout.splitlines())


def run(build, driver, raw, out, software_devices=2):
    count = device_count(driver, software_devices)
    load = build / "bench" / "tenant_load"
    blocks = {"serving": {"admin": True}, "batch": {}}
    with tenants.TenantServer(blocks, {"placement": "spread"}, driver=driver, build=build,
                              warm_workers=count, software_devices=software_devices) as server:
        remote = Remote(server)
        arrangements = [("longwire", [remote] * count)]
        if driver != "software":
            arrangements.insert(0, ("native", [NativeOn(i) for i in range(count)]))
        iterations = calibrate(remote, load, raw)
        say(out, f"{'kernels back to back':<28} {'one 1/s':>9} {f'{count} 1/s':>9} "
                 f"{f'{count}/one':>8}")
        for kind, length in (("request", "1.1 ms"), ("batch", "21 ms")):
            for name, sides in arrangements:
                one, every = [], []
                for _ in range(ROUNDS):
                    one.append(kernels_per_second(sides[:1], load, iterations[kind], raw))
                    every.append(kernels_per_second(sides, load, iterations[kind], raw))
                single, together = statistics.median(one), statistics.median(every)
                say(out, f"{name + ', ' + length:<28} {single:9.1f} {together:9.1f} "
                         f"{together / single:8.2f}")
