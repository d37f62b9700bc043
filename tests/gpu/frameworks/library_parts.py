"""Small programs of libraries that stand on PyTorch or JAX: library_parts.py PART.

Each trains or computes a little, checks that it went the right way, and prints hashes of what came
out, which are the same natively."""
import sys

from shown import show, show_tensor


def deterministic():
    import torch
    torch.manual_seed(1)
    torch.use_deterministic_algorithms(True)
    torch.backends.cuda.matmul.allow_tf32 = False
    return torch


def train(torch, model, parameters, compute_loss, steps=20, rate=1e-2):
    """Losses must fall; prints the last one and the first parameter."""
    optimizer = torch.optim.Adam(parameters, rate)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = compute_loss()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0], losses
    show("losses", losses)
    show_tensor("parameter", next(iter(model.parameters())))


def peft():
    """LoRA on a small GPT-2."""
    torch = deterministic()
    import peft as library
    import transformers
    base = transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=500, n_positions=64, n_embd=128, n_layer=2, n_head=4, resid_pdrop=0,
        embd_pdrop=0, attn_pdrop=0))
    model = library.get_peft_model(base, library.LoraConfig(r=4, target_modules=["c_attn"],
                                                            fan_in_fan_out=True)).cuda()
    tokens = torch.randint(0, 500, (8, 64), device="cuda")
    train(torch, model, [p for p in model.parameters() if p.requires_grad],
          lambda: model(input_ids=tokens, labels=tokens).loss)


def lightning():
    torch = deterministic()
    import lightning as library

    class Module(library.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(32, 1)
            self.losses = []

        def training_step(self, batch, _):
            loss = ((self.layer(batch[0]) - batch[1]) ** 2).mean()
            self.losses.append(loss.detach())
            return loss

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 1e-2)

    inputs = torch.randn(512, 32)
    data = torch.utils.data.TensorDataset(inputs, inputs.sum(1, keepdim=True))
    module = Module()
    trainer = library.Trainer(max_epochs=2, accelerator="gpu", devices=1, logger=False,
                              enable_checkpointing=False, enable_progress_bar=False,
                              enable_model_summary=False)
    trainer.fit(module, torch.utils.data.DataLoader(data, 64))
    assert module.losses[-1] < module.losses[0]
    show_tensor("losses", torch.stack(module.losses))


def geometric():
    torch = deterministic()
    from torch_geometric import nn
    edges = torch.randint(0, 200, (2, 1000), device="cuda")
    features = torch.randn(200, 16, device="cuda")
    labels = torch.randint(0, 4, (200,), device="cuda")
    model = nn.Sequential("x, edges", [(nn.GCNConv(16, 32), "x, edges -> x"), torch.nn.ReLU(),
                                       (nn.GCNConv(32, 4), "x, edges -> x")]).cuda()
    train(torch, model, model.parameters(),
          lambda: torch.nn.functional.cross_entropy(model(features, edges), labels))


def timm():
    torch = deterministic()
    import timm as library
    model = library.create_model("vit_tiny_patch16_224", num_classes=10, img_size=64).cuda()
    images = torch.randn(8, 3, 64, 64, device="cuda")
    labels = torch.arange(8, device="cuda")
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        train(torch, model, model.parameters(),
              lambda: torch.nn.functional.cross_entropy(model(images), labels), rate=1e-3)


def gpytorch():
    torch = deterministic()
    import gpytorch as library
    inputs = torch.linspace(0, 1, 100, device="cuda")
    values = torch.sin(6 * inputs)

    class Model(library.models.ExactGP):
        def __init__(self, likelihood):
            super().__init__(inputs, values, likelihood)
            self.mean = library.means.ConstantMean()
            self.kernel = library.kernels.ScaleKernel(library.kernels.RBFKernel())

        def forward(self, x):
            return library.distributions.MultivariateNormal(self.mean(x), self.kernel(x))

    likelihood = library.likelihoods.GaussianLikelihood().cuda()
    model = Model(likelihood).cuda()
    marginal = library.mlls.ExactMarginalLogLikelihood(likelihood, model)
    train(torch, model, model.parameters(), lambda: -marginal(model(inputs), values), rate=0.1)


def e3nn():
    torch = deterministic()
    from e3nn import o3
    layer = o3.FullyConnectedTensorProduct("8x0e + 8x1o", "4x0e + 4x1o", "8x0e + 8x1o").cuda()
    one = torch.randn(64, layer.irreps_in1.dim, device="cuda")
    other = torch.randn(64, layer.irreps_in2.dim, device="cuda")
    train(torch, layer, layer.parameters(), lambda: ((layer(one, other) - 1) ** 2).mean())


def torchvision():
    torch = deterministic()
    import torchvision as library
    boxes = torch.rand(500, 2, device="cuda") * 50
    boxes = torch.cat([boxes, boxes + 10], 1)
    kept = library.ops.nms(boxes, torch.rand(500, device="cuda"), 0.5)
    assert 0 < len(kept) < 500
    show_tensor("kept", kept)
    model = library.models.resnet18(num_classes=10).cuda()
    images = torch.randn(8, 3, 64, 64, device="cuda")
    labels = torch.arange(8, device="cuda")
    train(torch, model, model.parameters(),
          lambda: torch.nn.functional.cross_entropy(model(images), labels), rate=1e-3)


def torchaudio():
    torch = deterministic()
    import torchaudio as library
    sound = torch.sin(torch.arange(16000, device="cuda") * 0.1)
    spectrum = library.transforms.MelSpectrogram(16000, n_mels=40).cuda()(sound)
    assert spectrum.argmax(0).float().std() < 5
    show_tensor("spectrum", spectrum)
    show_tensor("resampled", library.functional.resample(sound, 16000, 8000))


def torchdiffeq():
    torch = deterministic()
    import torchdiffeq as library
    field = torch.nn.Sequential(torch.nn.Linear(2, 32), torch.nn.Tanh(),
                                torch.nn.Linear(32, 2)).cuda()
    start = torch.randn(16, 2, device="cuda")
    times = torch.linspace(0, 1, 5, device="cuda")
    train(torch, field, field.parameters(),
          lambda: library.odeint(lambda t, y: field(y), start, times).pow(2).mean(), steps=10)


def accelerate():
    torch = deterministic()
    import accelerate as library
    runner = library.Accelerator(mixed_precision="bf16")
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU(), torch.nn.Linear(64, 1))
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    model, optimizer = runner.prepare(model, optimizer)
    inputs = torch.randn(256, 64, device=runner.device)
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = ((model(inputs).float() - inputs.sum(1, keepdim=True)) ** 2).mean()
        runner.backward(loss)
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    show("losses", losses)


def flax():
    import jax
    import jax.numpy as jnp
    import optax
    from flax import linen
    model = linen.Sequential([linen.Dense(64), linen.relu, linen.Dense(1)])
    inputs = jax.random.normal(jax.random.key(0), (128, 16))
    weights = model.init(jax.random.key(1), inputs)
    optimizer = optax.adam(1e-2)
    state = optimizer.init(weights)

    @jax.jit
    def step(weights, state):
        value, slopes = jax.value_and_grad(
            lambda w: jnp.mean((model.apply(w, inputs)[:, 0] - inputs.sum(1)) ** 2))(weights)
        updates, state = optimizer.update(slopes, state)
        return value, optax.apply_updates(weights, updates), state

    losses = []
    for _ in range(30):
        value, weights, state = step(weights, state)
        losses.append(float(value))
    assert losses[-1] < losses[0]
    show("losses", losses)


def numpyro():
    import jax
    import numpyro as library
    from numpyro import distributions, infer
    data = jax.random.normal(jax.random.key(0), (200,)) + 3

    def model():
        mean = library.sample("mean", distributions.Normal(0, 10))
        library.sample("data", distributions.Normal(mean, 1), obs=data)

    sampler = infer.MCMC(infer.NUTS(model), num_warmup=100, num_samples=100, progress_bar=False)
    sampler.run(jax.random.key(1))
    mean = sampler.get_samples()["mean"]
    assert abs(float(mean.mean()) - float(data.mean())) < 0.2
    show("samples", mean)


def diffrax():
    import diffrax as library
    import jax.numpy as jnp
    result = library.diffeqsolve(library.ODETerm(lambda t, y, _: -y), library.Tsit5(), 0, 1, 0.01,
                                 jnp.ones(64))
    assert jnp.allclose(result.ys[-1], jnp.exp(-1), atol=1e-4)
    show("end", result.ys[-1])


PARTS = {part.__name__: part for part in
         (peft, lightning, geometric, timm, gpytorch, e3nn, torchvision, torchaudio, torchdiffeq,
          accelerate, flax, numpyro, diffrax)}


if __name__ == "__main__":
    PARTS[sys.argv[1]]()
    print("PASS library_parts")
