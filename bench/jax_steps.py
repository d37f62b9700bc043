"""Training steps of a small network in JAX, each with one wait for its loss.

  jax_steps.py jax [--steps N]

Prints "name value unit" lines as torch_steps.py does."""
import argparse
import statistics
import time

import jax
import jax.numpy as jnp

WARM_STEPS = 20
WIDTHS = (784, 512, 512, 512, 10)
BATCH = 128


def loss(layers, inputs, wanted):
    for weights, biases in layers[:-1]:
        inputs = jax.nn.relu(inputs @ weights + biases)
    weights, biases = layers[-1]
    chances = jax.nn.log_softmax(inputs @ weights + biases)
    return -jnp.mean(jnp.sum(chances * wanted, axis=1))


@jax.jit
def step(layers, inputs, wanted):
    value, slopes = jax.value_and_grad(loss)(layers, inputs, wanted)
    return value, jax.tree.map(lambda weight, slope: weight - 0.01 * slope, layers, slopes)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=["jax"])
    parser.add_argument("--steps", type=int, default=100)
    arguments = parser.parse_args()
    keys = jax.random.split(jax.random.key(1), len(WIDTHS) + 1)
    layers = [(jax.random.normal(key, (rows, columns)) * rows ** -0.5, jnp.zeros(columns))
              for key, rows, columns in zip(keys, WIDTHS, WIDTHS[1:])]
    inputs = jax.random.normal(keys[-2], (BATCH, WIDTHS[0]))
    wanted = jax.nn.one_hot(jax.random.randint(keys[-1], (BATCH,), 0, WIDTHS[-1]), WIDTHS[-1])
    times = []
    for _ in range(WARM_STEPS + arguments.steps):
        begun = time.perf_counter()
        value, layers = step(layers, inputs, wanted)
        value.block_until_ready()
        times.append((time.perf_counter() - begun) * 1000)
    print(f"jax_step {statistics.median(times[WARM_STEPS:]):.4f} ms")
    print(f"jax_result {float(value):.6f} 1", flush=True)


if __name__ == "__main__":
    main()
