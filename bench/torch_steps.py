"""Steps of PyTorch programs, each with one synchronize, and training that reads its loss rarely.

  torch_steps.py [mlp|gpt|cnn|forward|compiled|replayed|train]... [--steps N]

  mlp      a training step of a small network of four layers (fp32, 128 x 784)
  gpt      a training step of an 11 M parameter GPT (bf16 autocast, 16 x 256 tokens)
  cnn      a training step of a small convolutional network (fp32, 64 x 3 x 32 x 32)
  forward  that GPT's forward pass, one text of 256 tokens
  compiled the gpt step by torch.compile
  replayed the forward pass by torch.compile(mode="reduce-overhead"), which replays graphs
  train    the gpt step without a synchronize, the loss read every 50 steps

Prints "name value unit" lines: the median step, of train all its steps' time by their number, and
each kind's last loss or sum, which is the same natively."""
import argparse
import statistics
import time

import torch
from torch import nn
from torch.nn import functional

WARM_STEPS = 20
LOSS_EVERY = 50


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before_attention, self.before_network = nn.LayerNorm(width), nn.LayerNorm(width)
        self.queries_keys_values = nn.Linear(width, 3 * width)
        self.after_attention = nn.Linear(width, width)
        self.network = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(),
                                     nn.Linear(4 * width, width))

    def forward(self, x):
        batch, tokens, width = x.shape
        parts = self.queries_keys_values(self.before_attention(x)).chunk(3, dim=2)
        heads = (part.view(batch, tokens, self.heads, width // self.heads).transpose(1, 2)
                 for part in parts)
        attention = functional.scaled_dot_product_attention(*heads, is_causal=True)
        attention = attention.transpose(1, 2).reshape(batch, tokens, width)
        x = x + self.after_attention(attention)
        return x + self.network(self.before_network(x))


class Gpt(nn.Module):
    """6 blocks of width 384, 6 heads, 128 tokens: 10.8 M parameters."""

    def __init__(self, vocabulary=128, width=384, layers=6, context=256):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.Sequential(*(Block(width, 6) for _ in range(layers)))
        self.last = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens):
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.blocks(self.tokens(tokens) + self.places(places))
        return self.head(self.last(x)).flatten(0, 1)


class Training:
    """A model, its optimizer, and batches in pinned memory."""

    def __init__(self, model, batches, autocast):
        self.model = model.cuda()
        self.batches = [(inputs.pin_memory(), wanted.pin_memory()) for inputs, wanted in batches]
        self.autocast = autocast
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4)
        self.done = 0

    def step(self):
        inputs, wanted = self.batches[self.done % len(self.batches)]
        self.done += 1
        inputs, wanted = inputs.cuda(non_blocking=True), wanted.cuda(non_blocking=True)
        with torch.autocast("cuda", torch.bfloat16, enabled=self.autocast):
            loss = functional.cross_entropy(self.model(inputs), wanted.flatten())
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        return loss.detach()


class Forward:
    def __init__(self, compiled=lambda model: model):
        self.model = compiled(Gpt().cuda().eval())
        self.tokens = torch.randint(128, (1, 256)).cuda()

    @torch.no_grad()
    def step(self):
        with torch.autocast("cuda", torch.bfloat16):
            return self.model(self.tokens).sum()


def mlp():
    model = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(),
                          nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    return Training(model, [(torch.randn(128, 784), torch.randint(10, (128,)))
                            for _ in range(4)], False)


def cnn():
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(64, 128, 3, padding=1), nn.BatchNorm2d(128), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 10))
    return Training(model, [(torch.randn(64, 3, 32, 32), torch.randint(10, (64,)))
                            for _ in range(4)], False)


def gpt(compiled=lambda model: model):
    texts = [torch.randint(128, (16, 257)) for _ in range(4)]
    return Training(compiled(Gpt()), [(text[:, :-1].contiguous(), text[:, 1:].contiguous())
                                      for text in texts], True)


def replayed():
    return Forward(lambda model: torch.compile(model, mode="reduce-overhead"))


KINDS = {"mlp": mlp, "gpt": gpt, "cnn": cnn, "forward": Forward,
         "compiled": lambda: gpt(torch.compile), "replayed": replayed, "train": gpt}
BY_DEFAULT = [kind for kind in KINDS if kind not in ("compiled", "replayed")]


def time_steps(program, steps):
    """The median step in milliseconds, and the last result."""
    times = []
    for _ in range(steps):
        begin = time.perf_counter()
        result = program.step()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - begin) * 1000)
    return statistics.median(times), result.item()


def time_training(program, steps):
    begin = time.perf_counter()
    for done in range(1, steps + 1):
        loss = program.step()
        if done % LOSS_EVERY == 0:
            last = loss.item()
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) * 1000 / steps, last


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", default=BY_DEFAULT, metavar="KIND")
    parser.add_argument("--steps", type=int, default=100)
    arguments = parser.parse_args()
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.backends.cudnn.benchmark = False
    for kind in arguments.kinds:
        torch.manual_seed(1)
        program = KINDS[kind]()
        measure = time_training if kind == "train" else time_steps
        # As many as the loss is read once: what is read for the first time is not part of it.
        measure(program, LOSS_EVERY if kind == "train" else WARM_STEPS)
        value, result = measure(program, arguments.steps)
        print(f"{kind}_step {value:.4f} ms")
        print(f"{kind}_result {result:.6f} 1", flush=True)
        del program


if __name__ == "__main__":
    main()
