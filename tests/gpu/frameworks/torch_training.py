"""Trains a small model from a seed, for 20 steps and then on to 500, and prints hashes of the
losses and of the parameters.

    torch_training.py cnn|transformer fp32|bf16
"""
import sys

import torch
from torch import nn
from torch.nn import functional

from shown import show_steps, show_tensor


class Cnn(nn.Module):
    """Images of 3 x 32 x 32, ten classes."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2))
        self.classes = nn.Linear(64 * 8 * 8, 10)

    def forward(self, images):
        return self.classes(self.features(images).flatten(1))

    @staticmethod
    def batch(generator):
        return (torch.randn(32, 3, 32, 32, generator=generator),
                torch.randint(10, (32,), generator=generator))


class Transformer(nn.Module):
    """Texts of 64 tokens out of 256, the next token asked for."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(256, 128)
        layer = nn.TransformerEncoderLayer(128, 4, 256, dropout=0.1, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.tokens = nn.Linear(128, 256)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(64))

    def forward(self, tokens):
        return self.tokens(self.layers(self.embedding(tokens), mask=self.mask)).flatten(0, 1)

    @staticmethod
    def batch(generator):
        tokens = torch.randint(256, (8, 65), generator=generator)
        return tokens[:, :-1], tokens[:, 1:]


def train(model, optimizer, generator, steps, autocast):
    """One loss per step, kept on the device: nothing waits between steps."""
    losses = []
    for _ in range(steps):
        inputs, wanted = model.batch(generator)
        inputs, wanted = inputs.cuda(non_blocking=True), wanted.cuda(non_blocking=True)
        with torch.autocast("cuda", torch.bfloat16, enabled=autocast):
            # In rows: the loss of images has no deterministic kernel.
            loss = functional.cross_entropy(model(inputs), wanted.flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses)


def main():
    kind, precision = sys.argv[1:]
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.benchmark = False
    torch.manual_seed(7)
    generator = torch.Generator().manual_seed(11)
    model = {"cnn": Cnn, "transformer": Transformer}[kind]().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    done = 0
    for until in (20, 500):
        losses = train(model, optimizer, generator, until - done, precision == "bf16")
        done = until
        show_tensor(f"losses to step {until}", losses)
        assert torch.isfinite(losses).all()
        for name, parameter in model.named_parameters():
            show_tensor(f"step {until} {name}", parameter)
    show_steps(done)
    print("PASS torch_training")


if __name__ == "__main__":
    main()
