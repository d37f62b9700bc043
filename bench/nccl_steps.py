"""What a program of PyTorch that uses all GPUs of a host takes: NCCL's collectives and steps of
training, one process for each device. Prints figures, and a checksum of each result.

    nccl_steps.py
"""
import os
import time

import torch
from torch import distributed, multiprocessing, nn
from torch.distributed.fsdp import FullyShardedDataParallel
from torch.nn.parallel import DistributedDataParallel

SIZES = [1 << 10, 1 << 20, 64 << 20, 256 << 20]  # bytes
STEPS, WIDTH, LAYERS, BATCH = 30, 4096, 8, 64


def seconds_of(work, repetitions):
    """The median of single runs, each waited for."""
    times = []
    for _ in range(repetitions + 2):
        torch.cuda.synchronize()
        distributed.barrier()
        begun = time.perf_counter()
        work()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begun)
    times = sorted(times[2:])
    return times[len(times) // 2]


def collectives(rank, count, say):
    for size in SIZES:
        name = f"{size >> 10}KiB"
        mine = torch.full((size // 4,), float(rank + 1), device="cuda")
        parts = torch.empty(size // 4 * count, device="cuda")
        left, right = (rank - 1) % count, (rank + 1) % count
        other = torch.empty_like(mine)

        def around():
            ops = [distributed.P2POp(distributed.isend, mine, right),
                   distributed.P2POp(distributed.irecv, other, left)]
            for work in distributed.batch_isend_irecv(ops):
                work.wait()

        for kind, work in {"all_gather": lambda: distributed.all_gather_into_tensor(parts, mine),
                           "send_receive": around}.items():
            say(f"{kind}_{name}", size / seconds_of(work, 10) / 1e9, "GB/s")
        assert (parts.view(count, -1)[:, 0].cpu() == torch.arange(1., count + 1)).all()
        assert float(other[-1]) == left + 1
        # Sums stay what they are if every rank divides them.
        reduced = mine.clone()
        distributed.all_reduce(reduced)
        assert float(reduced[-1]) == count * (count + 1) / 2
        took = seconds_of(lambda: distributed.all_reduce(other), 10)
        say(f"all_reduce_{name}", size / took / 1e9, "GB/s")


def training(rank, say):
    for kind, wrap in {"ddp": lambda model: DistributedDataParallel(model, device_ids=[rank]),
                       "fsdp": FullyShardedDataParallel}.items():
        torch.manual_seed(1)
        model = wrap(nn.Sequential(*[layer for _ in range(LAYERS) for layer in
                                     (nn.Linear(WIDTH, WIDTH), nn.ReLU())]).cuda())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        batch = torch.randn(BATCH, WIDTH, generator=torch.Generator().manual_seed(rank)).cuda()
        losses = []

        def step():
            optimizer.zero_grad()
            loss = model(batch).square().mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())

        say(f"{kind}_step", seconds_of(step, STEPS) * 1e3, "ms")
        say(f"{kind}_result", float(losses[-1]) * 1e6, "e-6")


def rank_main(rank, count):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29541")
    torch.cuda.set_device(rank)
    torch.use_deterministic_algorithms(True)
    distributed.init_process_group("nccl", rank=rank, world_size=count,
                                   device_id=torch.device("cuda", rank))

    def say(name, value, unit):
        if rank == 0:
            print(f"{name} {value:.4f} {unit}", flush=True)

    collectives(rank, count, say)
    training(rank, say)
    distributed.destroy_process_group()


def main():
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    count = torch.cuda.device_count()
    print(f"devices {count}.0 1")
    multiprocessing.spawn(rank_main, args=(count,), nprocs=count)


if __name__ == "__main__":
    main()
