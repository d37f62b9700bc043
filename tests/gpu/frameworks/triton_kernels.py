"""Kernels written in Triton: a fused sum, and a matrix product by blocks."""
import torch
import triton
import triton.language as tl

from shown import show_tensor


@triton.jit
def add_scaled(a, b, out, count, by: tl.constexpr, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < count
    tl.store(out + place, tl.load(a + place, inside) + by * tl.load(b + place, inside), inside)


@triton.jit
def multiply(a, b, out, size, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, size, BLOCK):
        inner = start + tl.arange(0, BLOCK)
        left = tl.load(a + rows[:, None] * size + inner[None, :])
        right = tl.load(b + inner[:, None] * size + columns[None, :])
        total += tl.dot(left, right)
    tl.store(out + rows[:, None] * size + columns[None, :], total)


def main():
    generator = torch.Generator().manual_seed(6)
    a = torch.randn(100_001, generator=generator).cuda()
    b = torch.randn(100_001, generator=generator).cuda()
    out = torch.empty_like(a)
    add_scaled[(triton.cdiv(a.numel(), 1024),)](a, b, out, a.numel(), 3, BLOCK=1024)
    assert torch.allclose(out, a + 3 * b, atol=1e-5)
    show_tensor("add_scaled", out)
    size = 512
    left = torch.randn(size, size, generator=generator).cuda().half()
    right = torch.randn(size, size, generator=generator).cuda().half()
    product = torch.empty(size, size, device="cuda")
    multiply[(size // 64, size // 64)](left, right, product, size, BLOCK=64)
    assert torch.allclose(product, left.float() @ right.float(), atol=1e-1)
    show_tensor("multiply", product)
    print("PASS triton_kernels")


if __name__ == "__main__":
    main()
