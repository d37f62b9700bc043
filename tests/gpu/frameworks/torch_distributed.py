"""An all-reduce over NCCL, by one process per device or by one process for all devices.

    torch_distributed.py processes|devices
"""
import os
import sys

import torch
from torch import distributed, multiprocessing

from shown import show_tensor


def work(rank, count, results):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29531")
    torch.cuda.set_device(rank)
    distributed.init_process_group("nccl", rank=rank, world_size=count)
    generator = torch.Generator().manual_seed(rank)
    mine = torch.randn(1_000_003, generator=generator).cuda()
    for _ in range(10):
        distributed.all_reduce(mine)
        mine /= count
    results.put((rank, mine.cpu().numpy()))
    distributed.destroy_process_group()


def one_process():
    from torch.cuda import nccl
    generator = torch.Generator().manual_seed(7)
    parts = [torch.randn(1_000_003, generator=generator).cuda(device)
             for device in range(torch.cuda.device_count())]
    expected = torch.stack([part.cpu() for part in parts]).sum(0)
    nccl.all_reduce(parts)
    for device, part in enumerate(parts):
        # NCCL adds in an order of its own.
        assert torch.allclose(part.cpu(), expected, atol=1e-5)
        show_tensor(f"device {device}", part)


def one_process_each():
    count = torch.cuda.device_count()
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    processes = [context.Process(target=work, args=(rank, count, results)) for rank in range(count)]
    for process in processes:
        process.start()
    found = dict(results.get(timeout=120) for _ in processes)
    for process in processes:
        process.join()
        assert process.exitcode == 0, process.exitcode
    for rank in range(count):
        assert (found[rank] == found[0]).all()
        show_tensor(f"rank {rank}", torch.from_numpy(found[rank]))


def main():
    {"processes": one_process_each, "devices": one_process}[sys.argv[1]]()
    print("PASS torch_distributed")


if __name__ == "__main__":
    main()
