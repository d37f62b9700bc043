"""PyTorch over two servers: a model with its halves on two devices, all-reduce by one process for
both, and data-parallel training with a rank on each.

    torch_across.py halves
    torch_across.py devices
    torch_across.py ranks nccl|gloo    with RANK, WORLD_SIZE and MASTER_PORT; each on its device 0
    torch_across.py collectives [BYTES,... SECONDS]
                                       the same; bytes are checked. Standard error has each step as
                                       it begins, and its time. Who is not done in the seconds from
                                       its first step on says what its threads do and ends
"""
import collections
import ctypes
import os
import pathlib
import sys
import threading
import time

import torch
from torch import distributed, nn

from shown import show_steps, show_tensor

STEPS = 20
SIZES = [1 << 10, 1 << 16, 1 << 20, 1 << 24, 1 << 26]  # bytes
ROUNDS = 3
WIDTH, BATCH = 512, 64


def half(seed):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH))


def batch(step, rank=0):
    generator = torch.Generator().manual_seed(1000 * rank + step)
    return torch.randn(BATCH, WIDTH, generator=generator)


def halves():
    """Activations go over forward, gradients go back."""
    first, second = half(1).to("cuda:0"), half(2).to("cuda:1")
    optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.01)
    for step in range(STEPS):
        between = first(batch(step).to("cuda:0"))
        loss = second(between.to("cuda:1")).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 5 == 0:
            show_tensor(f"loss {step}", loss)
    for name, model in (("first", first), ("second", second)):
        for number, parameter in enumerate(model.parameters()):
            show_tensor(f"{name} {number}", parameter)
            show_tensor(f"{name} {number} gradient", parameter.grad)
    show_steps(STEPS)


def devices():
    from torch.cuda import nccl
    parts = [batch(device).cuda(device) for device in range(2)]
    expected = torch.stack([part.cpu() for part in parts]).sum(0)
    nccl.all_reduce(parts)
    for device, part in enumerate(parts):
        assert torch.allclose(part.cpu(), expected, atol=1e-5)
        show_tensor(f"device {device}", part)


def ranks(backend):
    rank, count = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.cuda.set_device(0)
    distributed.init_process_group(backend, rank=rank, world_size=count)
    model = nn.parallel.DistributedDataParallel(half(1).cuda(), device_ids=[0])
    alone = half(1).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    of_alone = torch.optim.SGD(alone.parameters(), lr=0.01)
    for step in range(STEPS):
        for of, net, rows in ((optimizer, model, batch(step, rank)),
                              (of_alone, alone, torch.cat([batch(step, one)
                                                           for one in range(count)]))):
            of.zero_grad()
            net(rows.cuda()).square().mean().backward()
            of.step()
    for mine, whole in zip(model.module.parameters(), alone.parameters()):
        # The sum of means of halves is rounded elsewhere than the mean of all.
        assert torch.allclose(mine, whole, atol=1e-4), (mine - whole).abs().max().item()
    for number, parameter in enumerate(model.module.parameters()):
        show_tensor(f"parameter {number}", parameter)
    show_steps(STEPS)
    distributed.destroy_process_group()


def all_reduce(mine, values, rank, count):
    distributed.all_reduce(mine)
    return mine, sum(values)


def all_gather(mine, values, rank, count):
    parts = [torch.empty_like(mine) for _ in range(count)]
    distributed.all_gather(parts, mine)
    return torch.stack(parts), torch.stack(values)


def send_receive(mine, values, rank, count):
    if rank == 0:
        distributed.send(mine, 1)
        return mine, values[0]
    distributed.recv(mine, 0)
    return mine, values[0]


def end_after(seconds, step):
    """Ends a process that stands still. Not at once: what is printed at an exit is wanted, too."""
    time.sleep(seconds)
    kinds = collections.Counter()
    for task in pathlib.Path("/proc/self/task").iterdir():
        try:
            state = (task / "stat").read_text().rsplit(")", 1)[1].split()[0]
            name, wait = ((task / file).read_text().strip() for file in ("comm", "wchan"))
            kinds[f"{name}, {state}, {wait}"] += 1
        except OSError:
            continue
    print(f"stands still at {step[0]}", *(f"{count} threads: {kind}"
                                          for kind, count in kinds.most_common(12)),
          sep="\n", file=sys.stderr, flush=True)
    ctypes.CDLL(None).exit(3)


def collectives(sizes="", seconds=None):
    rank, count = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.cuda.set_device(0)
    distributed.init_process_group("nccl", rank=rank, world_size=count)
    step = ["the start"]
    if seconds:
        threading.Thread(target=end_after, args=(float(seconds), step), daemon=True).start()
    for size in map(int, sizes.split(",")) if sizes else SIZES:
        # Whole numbers, so that every order of a sum is exact.
        values = [torch.arange(size // 4).add(one).remainder(1000).float().cuda()
                  for one in range(count)]
        for call in (all_reduce, all_gather, send_receive):
            times = []
            for turn in range(ROUNDS):
                step[0] = f"{call.__name__} of {size}, {turn}"
                print(f"begins {step[0]}", file=sys.stderr, flush=True)
                mine = values[rank].clone()
                torch.cuda.synchronize()
                begun = time.perf_counter()
                found, wanted = call(mine, values, rank, count)
                torch.cuda.synchronize()
                times.append(time.perf_counter() - begun)
                assert torch.equal(found, wanted), f"{call.__name__} of {size} bytes"
            print(f"{call.__name__}_{size} {min(times) * 1e6:.1f} us", file=sys.stderr, flush=True)
    distributed.destroy_process_group()


def main():
    torch.use_deterministic_algorithms(True)
    {"halves": halves, "devices": devices, "ranks": ranks,
     "collectives": collectives}[sys.argv[1]](*sys.argv[2:])
    print("PASS torch_across")


if __name__ == "__main__":
    main()
