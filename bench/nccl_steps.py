"""NCCL's collectives over all GPUs of a host: one process for each, then one process for all.
Prints figures; results are checked.

    nccl_steps.py
"""
import torch
from torch import distributed

import torch_ranks

SIZES = [1 << 10, 1 << 20, 64 << 20, 256 << 20, 1 << 30]  # bytes
REPETITIONS, AT_ONCE = 5, 20  # as many as NCCL's own tests have


def name_of(size):
    return f"{size >> 10}KiB"


def exchange(mine, other, rank, count):
    """Everybody sends to the next and receives from the one before."""
    ops = [distributed.P2POp(distributed.isend, mine, (rank + 1) % count),
           distributed.P2POp(distributed.irecv, other, (rank - 1) % count)]
    for work in distributed.batch_isend_irecv(ops):
        work.wait()


def collectives(rank, count, say):
    for size in SIZES:
        mine = torch.full((size // 4,), float(rank + 1), device="cuda")
        parts = torch.empty(size // 4 * count, device="cuda")
        other = torch.empty_like(mine)
        for kind, work in {
                "all_gather": lambda: distributed.all_gather_into_tensor(parts, mine),
                "send_receive": lambda: exchange(mine, other, rank, count)}.items():
            took = torch_ranks.seconds_of(work, REPETITIONS, AT_ONCE)
            say(f"{kind}_{name_of(size)}", size / took / 1e9, "GB/s")
        assert (parts.view(count, -1)[:, 0].cpu() == torch.arange(1., count + 1)).all()
        assert float(other[-1]) == (rank - 1) % count + 1
        reduced = mine.clone()
        distributed.all_reduce(reduced)
        assert float(reduced[-1]) == count * (count + 1) / 2
        other.zero_()  # sums of sums would overflow
        took = torch_ranks.seconds_of(lambda: distributed.all_reduce(other), REPETITIONS, AT_ONCE)
        say(f"all_reduce_{name_of(size)}", size / took / 1e9, "GB/s")


def one_process(count):
    for size in SIZES:
        devices = list(range(count))
        tensors = [torch.full((size // 4,), float(i + 1), device=f"cuda:{i}") for i in devices]
        sums = [torch.empty_like(tensor) for tensor in tensors]
        took = torch_ranks.seconds_of(lambda: torch.cuda.nccl.all_reduce(tensors, sums),
                                      REPETITIONS, AT_ONCE, barrier=lambda: None, devices=devices)
        assert all(float(each[-1]) == count * (count + 1) / 2 for each in sums)
        print(f"one_process_all_reduce_{name_of(size)} {size / took / 1e9:.4f} GB/s", flush=True)


if __name__ == "__main__":
    torch_ranks.run(collectives)
    one_process(torch.cuda.device_count())
