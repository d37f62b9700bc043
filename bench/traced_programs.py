"""PyTorch programs whose allocations are recorded (record_traces.py): some bodies each, all alike.

  traced_programs.py training   steps of a GPT of 0.5 billion parameters with batches of several
                                lengths, an evaluation with others, torch.cuda.empty_cache()
  traced_programs.py caches     requests of several lengths whose key and value caches grow while
                                they are read: every second one's by doubling, the others' by
                                torch.cat. To be run with PYTORCH_NO_CUDA_MEMORY_CACHING=1.

Both print PyTorch's version and the device. Marks on standard error say where a body begins and
ends, and when a buffer is about to grow."""
import gc
import os
import sys
import time

import torch
from torch.nn import functional

import torch_steps


def mark(*words):
    """One write, as the client library's own lines."""
    os.write(2, f"mark {' '.join(map(str, words))}\n".encode())


def bodies(body, count):
    for _ in range(count):
        gc.collect()
        torch.cuda.synchronize()
        start = time.monotonic()
        mark("body")
        body()
        gc.collect()
        torch.cuda.synchronize()
        mark("end", f"{time.monotonic() - start:.2f}")


def training():
    vocabulary, context, texts = 32000, 1024, 8
    with torch.device("cuda"):
        model = torch_steps.Gpt(vocabulary, width=1536, layers=16, context=context)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def loss_of(count, tokens):
        text = torch.randint(vocabulary, (count, tokens + 1), device="cuda")
        with torch.autocast("cuda", torch.bfloat16):
            return functional.cross_entropy(model(text[:, :-1]), text[:, 1:].flatten())

    def body():
        for tokens in (512, 768, 1024, 640, 896, 512):
            mark("step", tokens)
            loss = loss_of(texts, tokens)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            loss.item()
        optimizer.zero_grad(set_to_none=True)
        del loss
        model.eval()
        with torch.no_grad():
            for count, tokens in ((16, 300), (5, 1000), (1, 77)):
                mark("evaluation", count, tokens)
                loss_of(count, tokens).item()
        model.train()
        mark("empty_cache")
        torch.cuda.empty_cache()

    bodies(body, 3)


WIDTH, HEADS, LAYERS, VOCABULARY = 4096, 32, 3, 64000
FIRST_TOKENS = 4096  # of a cache that doubles: 192 MiB


def random(*shape):
    return torch.randn(shape, device="cuda", dtype=torch.bfloat16).mul_(0.02)


def rows_for(tokens):
    """Keys and values of all layers, a row for each token."""
    return torch.empty((tokens, LAYERS, 2, HEADS, WIDTH // HEADS), device="cuda",
                       dtype=torch.bfloat16)


class Doubling:
    """A cache with room, in a buffer of twice the size when that is used up."""

    def __init__(self):
        self.rows, self.used = rows_for(FIRST_TOKENS), 0

    def begin(self, tokens):
        while self.used + tokens > self.rows.shape[0]:
            mark("grow")
            larger = rows_for(2 * self.rows.shape[0])
            larger[:self.rows.shape[0]].copy_(self.rows)
            self.rows = larger
            del larger
            mark("grown")
        self.used += tokens
        return self.rows[self.used - tokens:self.used]

    def read(self, layer, part):
        return self.rows[:self.used, layer, part]

    def finish(self):
        pass


class Appending:
    """A cache of exactly what is in it."""

    def __init__(self):
        self.rows, self.new = rows_for(0), None

    def begin(self, tokens):
        self.new = rows_for(tokens)
        return self.new

    def read(self, layer, part):
        return torch.cat([self.rows[:, layer, part], self.new[:, layer, part]])

    def finish(self):
        self.rows = torch.cat([self.rows, self.new])
        self.new = None


class Model:
    def __init__(self):
        self.embedding, self.head = random(VOCABULARY, WIDTH), random(VOCABULARY, WIDTH)
        self.layers = [(random(3 * WIDTH, WIDTH), random(WIDTH, WIDTH),
                        random(4 * WIDTH, WIDTH), random(WIDTH, 4 * WIDTH))
                       for _ in range(LAYERS)]

    def forward(self, tokens, cache):
        """What comes after the tokens; their keys and values are added to the cache."""
        x = self.embedding[tokens]
        new = cache.begin(tokens.shape[0])
        for layer, (three, out, up, down) in enumerate(self.layers):
            heads = functional.linear(functional.layer_norm(x, (WIDTH,)), three)
            heads = heads.view(-1, 3, HEADS, WIDTH // HEADS)
            new[:, layer].copy_(heads[:, 1:])
            parts = [heads[:, 0], cache.read(layer, 0), cache.read(layer, 1)]
            seen = functional.scaled_dot_product_attention(
                *(part.transpose(0, 1).unsqueeze(0) for part in parts))
            x = x + functional.linear(seen[0].transpose(0, 1).reshape(-1, WIDTH), out)
            del heads, parts, seen
            wide = functional.gelu(functional.linear(functional.layer_norm(x, (WIDTH,)), up))
            x = x + functional.linear(wide, down)
            del wide
        cache.finish()
        return functional.linear(x[-1:], self.head).argmax()


# Two requests begin in each round. Each has a number of tokens per round and a number of rounds.
REQUESTS = [(Doubling if number % 2 else Appending, number // 2, 3900 - 77 * number,
             6 - number % 4 // 3) for number in range(12)]


@torch.no_grad()
def caches():
    model = Model()

    def body():
        running = {}
        for at in range(12):
            mark("round", at)
            for number, (kind, start, tokens, rounds) in enumerate(REQUESTS):
                if at == start:
                    running[number] = kind()
                if start <= at < start + rounds:
                    text = torch.randint(VOCABULARY, (tokens,), device="cuda")
                    model.forward(text, running[number]).item()
                    del text
                if at == start + rounds - 1:
                    del running[number]

    bodies(body, 2)


if __name__ == "__main__":
    print(torch.__version__, torch.cuda.get_device_name(), sep="\n", flush=True)
    {"training": training, "caches": caches}[sys.argv[1]]()
