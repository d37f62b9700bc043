"""The frameworks that tests/gpu/run tries: a line of the table each."""
import collections
import pathlib
import re
import tempfile

FOLDER = pathlib.Path(__file__).resolve().parent / "frameworks"
SECONDS = 150
# A Python of its own, where tests/gpu/numba_bundle was unpacked.
CARRIED_NUMBA = FOLDER.parents[2] / "numba" / "python3"

# What a run is called, and the words of its command.
Framework = collections.namedtuple("Framework", "label words environment devices",
                                   defaults=((), 1))
PARTS = ("attention", "graphs", "compile", "loader", "files", "profiler", "amp")
LIBRARIES = ("accelerate", "diffrax", "e3nn", "flax", "geometric", "gpytorch", "lightning",
             "numpyro", "peft", "timm", "torchaudio", "torchdiffeq", "torchvision")
# Without the flag two native runs of JAX programs differ in their last bits, too.
SAME_BITS = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false",
             "XLA_FLAGS": "--xla_gpu_deterministic_ops=true"}
FRAMEWORKS = [
    Framework("torch_matmul", ["torch_matmul"]),
    *[Framework(f"torch_training.{model}.{precision}", ["torch_training", model, precision])
      for model in ("cnn", "transformer") for precision in ("fp32", "bf16")],
    *[Framework(f"torch_parts.{part}", ["torch_parts", part]) for part in PARTS],
    Framework("torch_parts.allocator.segments", ["torch_parts", "allocator"],
              {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}),
    Framework("torch_parts.allocator.async", ["torch_parts", "allocator"],
              {"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"}),
    Framework("triton_kernels", ["triton_kernels"]),
    Framework("cupy_parts", ["cupy_parts"]),
    Framework("numba_kernels", ["numba_kernels"]),
    Framework("jax_parts", ["jax_parts"], {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}),
    Framework("jax_scan", ["jax_scan"], SAME_BITS),
    Framework("text_generation", ["text_generation"]),
    *[Framework(f"library_parts.{part}", ["library_parts", part], SAME_BITS)
      for part in LIBRARIES],
    *[Framework(f"torch_distributed.{by}", ["torch_distributed", by], {}, 2)
      for by in ("devices", "processes")],
]
STEPS = re.compile(r"^steps (\d+)$", re.MULTILINE)
ROUND_TRIPS = re.compile(r"calls sent, (\d+) round trips")


def command(framework):
    script, *arguments = framework.words
    carried = CARRIED_NUMBA.exists() and script.startswith("numba")
    return [CARRIED_NUMBA if carried else "python3", FOLDER / f"{script}.py", *arguments]


def environment(framework):
    """Every run compiles its kernels anew: nothing is taken over from the run before."""
    cache = tempfile.mkdtemp(prefix="longwire-kernels-")
    return {"TRITON_CACHE_DIR": cache, "TORCHINDUCTOR_CACHE_DIR": cache, "CUPY_CACHE_DIR": cache,
            "CUBLAS_WORKSPACE_CONFIG": ":4096:8", "PYTHONDONTWRITEBYTECODE": "1",
            "LONGWIRE_TRACE": "summary", **dict(framework.environment)}


def what_is_wrong(framework, result):
    """A sentence, or None; libraries may say what they like on stderr."""
    lines = result.out.splitlines()
    if result.code == 0 and lines and lines[-1] == f"PASS {framework.words[0]}":
        return None
    said = " / ".join((result.out + result.err).strip().splitlines()[-4:])
    return f"exit code {result.code}: {said}"


def round_trips(result):
    """Of the whole program, and by step where it says how many it did."""
    trips = sum(map(int, ROUND_TRIPS.findall(result.err)))
    steps = STEPS.search(result.out)
    return f"{trips} round trips" + (f", {trips / int(steps[1]):.2f} a step" if steps else "")
