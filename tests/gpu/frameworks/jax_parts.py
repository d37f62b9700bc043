"""JAX: compiled functions, gradients, a training loop, and pmap over all devices."""
import jax
import jax.numpy as jnp

from shown import show, show_steps


def loss(weights, inputs, wanted):
    hidden = jnp.tanh(inputs @ weights["in"])
    return jnp.mean((hidden @ weights["out"] - wanted) ** 2)


@jax.jit
def step(weights, inputs, wanted):
    value, slopes = jax.value_and_grad(loss)(weights, inputs, wanted)
    return value, jax.tree.map(lambda weight, slope: weight - 0.05 * slope, weights, slopes)


def main():
    print(jax.__version__, [device.device_kind for device in jax.devices()])
    keys = jax.random.split(jax.random.key(8), 4)
    weights = {"in": jax.random.normal(keys[0], (32, 64)) * 0.1,
               "out": jax.random.normal(keys[1], (64, 4)) * 0.1}
    inputs = jax.random.normal(keys[2], (128, 32))
    wanted = jax.random.normal(keys[3], (128, 4))
    first = value = None
    for _ in range(50):
        value, weights = step(weights, inputs, wanted)
        first = value if first is None else first
    assert value < first
    show("loss", value)
    show("weights", weights["in"])
    devices = jax.local_device_count()
    shared = jax.pmap(lambda row: jax.lax.psum(row * 2, "all"), axis_name="all")
    rows = jnp.arange(devices * 1000.0).reshape(devices, 1000)
    summed = shared(rows)
    assert jnp.array_equal(summed[0], 2 * rows.sum(0))
    show("pmap", summed)
    show_steps(50)
    print("PASS jax_parts")


if __name__ == "__main__":
    main()
