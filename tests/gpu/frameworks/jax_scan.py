"""JAX: a scan of a gradient, which XLA replays as a graph with its copies' addresses set anew, and
a decomposition by cuSOLVER in vmap."""
import jax
import jax.numpy as jnp

from shown import show


def loss(weights, inputs):
    return jnp.tanh(inputs @ weights).sum()


def main():
    weights = jax.random.normal(jax.random.PRNGKey(0), (256, 256))
    inputs = jax.random.normal(jax.random.PRNGKey(1), (64, 256))
    slope = jax.jit(jax.grad(loss))
    values = jax.vmap(lambda one: jnp.linalg.eigvalsh(one @ one.T))(inputs.reshape(4, 16, 256))

    def step(carried, _):
        carried = slope(carried, inputs) * 1e-3 + carried
        return carried, carried.sum()

    for length in (50, 20):
        result, history = jax.lax.scan(step, weights, None, length=length)
        show("history", history)
        print(f"{length} steps: {float(result.sum()):.3f} {float(history.sum()):.2f}")
    print(f"{float(values.sum()):.2f}")
    print("PASS jax_scan")


if __name__ == "__main__":
    main()
