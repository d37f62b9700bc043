"""One process for each GPU of a host, and the times of what all of them do together: for the
programs of nccl_beside.py."""
import os
import time

import torch
from torch import distributed, multiprocessing


def synchronize(devices=None):
    for device in devices or [torch.cuda.current_device()]:
        torch.cuda.synchronize(device)


def seconds_of(work, repetitions, at_once, barrier=distributed.barrier, devices=None):
    """Of one run: the median of several times in which `at_once` run in a row, the last waited for.
    Who measures collectives and training does so, since nobody waits for each of them."""
    times = []
    for _ in range(repetitions + 2):
        synchronize(devices)
        barrier()
        begun = time.perf_counter()
        for _ in range(at_once):
            work()
        synchronize(devices)
        times.append((time.perf_counter() - begun) / at_once)
    times = sorted(times[2:])
    return times[len(times) // 2]


def rank_main(rank, count, parts):
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ.setdefault("MASTER_PORT", "29541")
    torch.cuda.set_device(rank)
    torch.use_deterministic_algorithms(True)
    distributed.init_process_group("nccl", rank=rank, world_size=count,
                                   device_id=torch.device("cuda", rank))

    def say(name, value, unit, by=0):
        if rank == by:
            print(f"{name} {value:.4f} {unit}", flush=True)

    for part in parts:
        part(rank, count, say)
    distributed.destroy_process_group()


def run(*parts):
    """Each of parts(rank, count, say) in every process, in turn."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    count = torch.cuda.device_count()
    print(f"devices {count}.0 1", flush=True)
    multiprocessing.spawn(rank_main, args=(count, parts), nprocs=count)
