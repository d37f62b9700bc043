"""Steps of training on all GPUs of a host, one process for each: data parallel (DDP), sharded
(FSDP), tensor parallel (DTensor) and as a pipeline with a stage for each GPU. Prints a step's time
and what the last loss is of each kind.

    training_steps.py [data|tensor|pipeline]...
"""
import sys

import torch
from torch import nn
from torch.distributed import pipelining
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel
from torch.distributed.tensor.parallel import (ColwiseParallel, RowwiseParallel,
                                               parallelize_module)
from torch.nn.parallel import DistributedDataParallel

import torch_ranks

STEPS, AT_ONCE = 5, 10  # how often measured, and steps between two waits
WIDTH, LAYERS, BATCH = 4096, 8, 64


def layers(count):
    torch.manual_seed(1)
    return nn.Sequential(*[layer for _ in range(count) for layer in
                           (nn.Linear(WIDTH, WIDTH), nn.ReLU())]).cuda()


def batch_of(seed):
    return torch.randn(BATCH, WIDTH, generator=torch.Generator().manual_seed(seed)).cuda()


def measure(kind, model, forward_and_backward, say, by=0):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    losses = []

    def step():
        optimizer.zero_grad()
        losses.append(forward_and_backward())
        optimizer.step()

    say(f"{kind}_step", torch_ranks.seconds_of(step, STEPS, AT_ONCE) * 1e3, "ms", by)
    if losses[-1] is not None:
        say(f"{kind}_result", float(losses[-1]) * 1e6, "e-6", by)


def plain_step(model, batch):
    def forward_and_backward():
        loss = model(batch).square().mean()
        loss.backward()
        return loss.detach()
    return forward_and_backward


def data_parallel(rank, count, say):
    for kind, wrap in {"ddp": lambda model: DistributedDataParallel(model, device_ids=[rank]),
                       "fsdp": FullyShardedDataParallel}.items():
        model = wrap(layers(LAYERS))
        measure(kind, model, plain_step(model, batch_of(rank)), say)


def tensor_parallel(rank, count, say):
    """Layers in pairs: columns, then rows, so that one sum is exchanged for two layers."""
    mesh = init_device_mesh("cuda", (count,))
    plan = {str(2 * i): RowwiseParallel() if i % 2 else ColwiseParallel() for i in range(LAYERS)}
    model = parallelize_module(layers(LAYERS), mesh, plan)
    measure("tensor_parallel", model, plain_step(model, batch_of(0)), say)


def pipeline(rank, count, say):
    """A stage of two layers on each GPU, as many parts of a batch under way as stages."""
    device = torch.device("cuda", rank)
    stage = layers(2)
    place = pipelining.PipelineStage(stage, rank, count, device)
    schedule = pipelining.ScheduleGPipe(place, n_microbatches=count,
                                        loss_fn=lambda out, wanted: (out - wanted).square().mean())
    batch, wanted = batch_of(0), torch.zeros(BATCH, WIDTH, device=device)

    def forward_and_backward():
        losses = []
        if rank == 0:
            schedule.step(batch)
        elif rank == count - 1:
            schedule.step(target=wanted, losses=losses)
        else:
            schedule.step()
        return torch.stack([loss.detach() for loss in losses]).mean() if losses else None

    measure("pipeline", stage, forward_and_backward, say, by=count - 1)


KINDS = {"data": data_parallel, "tensor": tensor_parallel, "pipeline": pipeline}

if __name__ == "__main__":
    torch_ranks.run(*[KINDS[kind] for kind in sys.argv[1:] or KINDS])
