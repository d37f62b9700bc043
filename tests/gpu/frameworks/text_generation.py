"""Transformers: text generated token by token, so that attention has a new length at each token.

What is generated goes to standard output and is the same natively; how long a token took goes to
standard error: text_generation.py [TOKENS]."""
import statistics
import sys
import time

import torch
import transformers

from shown import show_steps, show_tensor

PROMPT = 50


class Clock(transformers.generation.stopping_criteria.StoppingCriteria):
    """Called behind each token: never stops, notes the time."""

    def __init__(self):
        self.times = []

    def __call__(self, tokens, scores, **_):
        torch.cuda.synchronize()
        self.times.append(time.monotonic())
        return torch.zeros(tokens.shape[0], dtype=torch.bool, device=tokens.device)


def main():
    tokens = int(sys.argv[1]) if len(sys.argv) > 1 else 96
    torch.manual_seed(1)
    config = transformers.LlamaConfig(
        vocab_size=4000, hidden_size=2048, intermediate_size=4096, num_hidden_layers=4,
        num_attention_heads=16, num_key_value_heads=16, max_position_embeddings=1024)
    model = transformers.LlamaForCausalLM(config).to("cuda", torch.bfloat16).eval()
    prompt = torch.randint(0, 4000, (1, PROMPT), device="cuda")
    clock = Clock()
    said = model.generate(
        prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=tokens,
        min_new_tokens=tokens, do_sample=False, pad_token_id=0,
        stopping_criteria=transformers.StoppingCriteriaList([clock]))
    assert said.shape == (1, PROMPT + tokens)
    show_tensor("tokens", said)
    gaps = [after - before for before, after in zip(clock.times, clock.times[1:])]
    print(f"token_median {statistics.median(gaps) * 1e3:.2f} ms", file=sys.stderr)
    print(f"token_mean {statistics.mean(gaps) * 1e3:.2f} ms", file=sys.stderr)
    show_steps(tokens)
    print("PASS text_generation")


if __name__ == "__main__":
    main()
