"""PyTorch's two sides of a shared GPU, driven by lines on standard input.

  torch_load.py serve    "SEED COUNT": answers COUNT requests, 20 a second, each one forward pass of
                         a 12-layer transformer (batch 1, 128 tokens, fp16)
  torch_load.py train    "SEED SECONDS": steps of training a transformer (8 layers, 8 x 512 tokens,
                         bf16 autocast, AdamW), back to back

Each line is answered by figures, "name value unit", and an empty line."""
import random
import sys
import time

import torch

REQUESTS_PER_SECOND = 20


def transformer(layers, width):
    layer = torch.nn.TransformerEncoderLayer(width, width // 64, 4 * width, dropout=0.0,
                                             activation="gelu", batch_first=True)
    return torch.nn.TransformerEncoder(layer, layers, enable_nested_tensor=False).cuda()


class Serve:
    def __init__(self):
        self.model = transformer(12, 768).half().eval()
        self.tokens = torch.randn(1, 128, 768).half()
        for _ in range(20):
            self.answer()

    @torch.no_grad()
    def answer(self):
        return self.model(self.tokens.cuda()).sum().item()

    def run(self, seed, count):
        pauses = random.Random(seed)
        times = []
        for _ in range(int(count)):
            time.sleep(pauses.uniform(0.5, 1.5) / REQUESTS_PER_SECOND)
            begin = time.perf_counter()
            self.answer()
            times.append((time.perf_counter() - begin) * 1000)
        times.sort()
        return [("request_p50", times[len(times) // 2], "ms"),
                ("request_p99", times[len(times) * 99 // 100], "ms"),
                ("request_most", times[-1], "ms")]


class Train:
    def __init__(self):
        self.model = transformer(8, 1024)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4)
        self.batch = torch.randn(8, 512, 1024, device="cuda")
        for _ in range(5):
            self.step()

    def step(self):
        with torch.autocast("cuda", torch.bfloat16):
            loss = self.model(self.batch).square().mean()
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return loss.item()

    def run(self, seed, seconds):
        begin, steps = time.perf_counter(), 0
        while time.perf_counter() - begin < float(seconds):
            self.step()
            steps += 1
        return [("train_steps", steps / (time.perf_counter() - begin), "1/s")]


def main():
    torch.manual_seed(1)
    load = {"serve": Serve, "train": Train}[sys.argv[1]]()
    print("READY", flush=True)
    for line in sys.stdin:
        for name, value, unit in load.run(*line.split()):
            print(f"{name} {value:.3f} {unit}")
        print(flush=True)


if __name__ == "__main__":
    main()
