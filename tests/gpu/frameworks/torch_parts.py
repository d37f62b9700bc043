"""One part of PyTorch at a time; prints hashes of the results.

    torch_parts.py attention|graphs|compile|loader|files|profiler|amp|allocator
"""
import os
import sys
import tempfile

import torch
from torch import nn
from torch.nn import functional

from shown import show_steps, show_tensor


def small_model():
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 10)).cuda()


def attention():
    """Scaled-dot-product attention by each backend the device has, forward and backward."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    generator = torch.Generator().manual_seed(5)
    heads = [torch.randn(2, 4, 256, 64, generator=generator) for _ in range(3)]
    for backend in (SDPBackend.MATH, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.FLASH_ATTENTION,
                    SDPBackend.CUDNN_ATTENTION):
        query, key, value = (head.to("cuda", torch.bfloat16).requires_grad_() for head in heads)
        with sdpa_kernel(backend):
            result = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        show_tensor(f"{backend.name} attention", result)
        if backend in (SDPBackend.MATH, SDPBackend.CUDNN_ATTENTION):
            result.sum().backward()
            show_tensor(f"{backend.name} gradient", query.grad)


def graphs():
    """A captured training step, replayed with new inputs."""
    model, optimizer = small_model(), None
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, capturable=True)
    inputs = torch.zeros(16, 64, device="cuda")
    wanted = torch.zeros(16, 10, device="cuda")

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = functional.mse_loss(model(inputs), wanted)
        loss.backward()
        optimizer.step()
        return loss

    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step()
    generator = torch.Generator().manual_seed(9)
    for _ in range(100):
        inputs.copy_(torch.randn(16, 64, generator=generator))
        graph.replay()
    show_tensor("loss", loss)
    show_tensor("weight", model[0].weight)
    show_steps(100)


def compiled():
    """torch.compile, whose kernels Triton builds."""
    model = small_model()
    run = torch.compile(model)
    inputs = torch.randn(32, 64, generator=torch.Generator().manual_seed(2)).cuda()
    for _ in range(10):
        loss = run(inputs).square().mean()
        loss.backward()
    show_tensor("loss", loss)
    show_tensor("gradient", model[0].weight.grad)
    assert torch.allclose(loss, model(inputs).square().mean(), rtol=1e-4)
    show_steps(10)


class Squares(torch.utils.data.Dataset):
    def __len__(self):
        return 256

    def __getitem__(self, index):
        return torch.full((64,), float(index)) ** 2, index


def loader():
    """Two forked workers fill batches, which are pinned and copied without a wait."""
    loading = torch.utils.data.DataLoader(Squares(), batch_size=16, num_workers=2, pin_memory=True,
                                          multiprocessing_context="fork")
    torch.zeros(1, device="cuda")
    total = torch.zeros(64, device="cuda")
    steps = 0
    for rows, index in loading:
        assert rows.is_pinned()
        total += rows.cuda(non_blocking=True).sum(0) + index.cuda(non_blocking=True).sum()
        steps += 1
    show_tensor("total", total)
    assert total[0].item() == sum(n * n + n for n in range(256))
    show_steps(steps)


def files():
    """A checkpoint written and read again."""
    model = small_model()
    with tempfile.NamedTemporaryFile(suffix=".pt") as file:
        torch.save(model.state_dict(), file.name)
        again = torch.load(file.name, map_location="cuda")
    for name, tensor in again.items():
        assert tensor.is_cuda and torch.equal(tensor, model.state_dict()[name])
        show_tensor(name, tensor)


def profiler():
    """Without CUPTI the profile has the CPU's side; it must not break the program."""
    from torch.profiler import ProfilerActivity, profile
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as taken:
        product = torch.ones(256, 256, device="cuda") @ torch.ones(256, 256, device="cuda")
        torch.cuda.synchronize()
    assert any(event.key == "aten::mm" for event in taken.key_averages())
    show_tensor("product", product)


def amp():
    """fp16 training with a gradient scaler, which reads one flag per step."""
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cuda")
    inputs = torch.randn(32, 64, generator=torch.Generator().manual_seed(2)).cuda()
    for _ in range(20):
        optimizer.zero_grad()
        with torch.autocast("cuda", torch.float16):
            loss = model(inputs).square().mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    show_tensor("weight", model[0].weight)
    print("scale", scaler.get_scale())
    show_steps(20)


def allocator():
    """Growing and shrinking tensors by the allocator that PYTORCH_CUDA_ALLOC_CONF chooses."""
    print("allocator", torch.cuda.get_allocator_backend(), os.environ["PYTORCH_CUDA_ALLOC_CONF"])
    kept = []
    for step in range(60):
        size = 1000 + 77_777 * step
        kept.append(torch.full((size,), float(step), device="cuda"))
        if step % 3 == 2:
            kept.pop(step // 3)
        if step % 20 == 19:
            torch.cuda.empty_cache()
    show_tensor("sums", torch.stack([tensor.double().sum() for tensor in kept]))
    for tensor in kept:
        assert tensor.min() == tensor.max()


PARTS = {"attention": attention, "graphs": graphs, "compile": compiled, "loader": loader,
         "files": files, "profiler": profiler, "amp": amp, "allocator": allocator}

if __name__ == "__main__":
    PARTS[sys.argv[1]]()
    torch.cuda.synchronize()
    print("PASS torch_parts")
