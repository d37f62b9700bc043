"""Trains a stack of linear layers of about 1 GiB (weights, gradients and two moments) from a seed,
in blocks of steps. With `stdin` it waits for a line before each block; it prints hashes of the
losses and, at the end, of the parameters.

    torch_moving.py now|stdin [LAYERS]
"""
import sys

import torch
from torch import nn

from shown import show_tensor

WIDTH, BATCH, BLOCKS, STEPS = 4096, 256, 6, 40


def main():
    waits = sys.argv[1] == "stdin"
    layers = int(sys.argv[2]) if len(sys.argv) > 2 else 4
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(7)
    torch.set_default_device("cuda")
    model = nn.Sequential(*[part for _ in range(layers)
                            for part in (nn.Linear(WIDTH, WIDTH), nn.GELU())])
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    inputs, wanted = torch.randn(BATCH, WIDTH), torch.randn(BATCH, WIDTH)
    for block in range(BLOCKS):
        if waits:
            print(f"READY {block}", flush=True)
            sys.stdin.readline()
        losses = []
        for _ in range(STEPS):
            loss = nn.functional.mse_loss(model(inputs), wanted)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        losses = torch.stack(losses)
        assert torch.isfinite(losses).all()
        show_tensor(f"losses of block {block}", losses)
    # All of four layers; of more only some, as hashing 10 GiB on the host takes its time.
    for name, parameter in list(model.named_parameters())[::max(1, layers // 4)]:
        show_tensor(name, parameter)
    print(f"bytes {torch.cuda.memory_allocated()}")
    print("PASS torch_moving")


if __name__ == "__main__":
    main()
