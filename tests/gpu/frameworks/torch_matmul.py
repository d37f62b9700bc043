"""Multiplies matrices with PyTorch and prints a hash of each result's bytes; the same program run
natively and through Longwire on the same GPU must print the same lines."""
import torch

from shown import show_tensor


def main():
    print(torch.__version__, torch.cuda.get_device_name(0), flush=True)
    generator = torch.Generator().manual_seed(1)
    for size, kind in ((512, torch.float32), (1024, torch.float32), (1024, torch.bfloat16),
                       (768, torch.float64), (2048, torch.float16)):
        host = torch.randn(size, size, generator=generator, dtype=torch.float64).to(kind)
        a = host.to("cuda")
        product = a @ a
        show_tensor(f"a @ a {size}", product)
        difference = (product.double().cpu() - host.double() @ host.double()).abs().max().item()
        scale = 0.3 if kind in (torch.bfloat16, torch.float16) else 1e-3
        assert difference < scale * size ** 0.5, (size, kind, difference)
    layer = torch.nn.Linear(64, 64)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    layer = layer.cuda()
    loss = torch.nn.functional.gelu(layer(torch.ones(8, 64, device="cuda"))).sum()
    loss.backward()
    show_tensor("gradient", layer.weight.grad)
    torch.cuda.synchronize()
    print("PASS torch_matmul")


if __name__ == "__main__":
    main()
