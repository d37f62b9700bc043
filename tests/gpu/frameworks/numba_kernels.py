"""Numba: kernels that it compiles itself, by the toolkit's libnvvm and libdevice.

    numba_kernels.py

Numba 0.56 is older than CUDA 13: it says that its code is of an earlier version of NVVM's language,
of which all that it uses is the same, and it takes the second form of every driver function, two of
which have got one argument more. Both are put right here, natively and through Longwire.
"""
import numba
import numpy as np
from llvmlite import ir
from numba import cuda
from numba.cuda.cudadrv import driver, nvvm

from shown import show

COUNT = 100_003
THREADS = 128


def say_the_version_that_is_read(module):
    number = ir.IntType(32)
    versions = [number(part) for part in nvvm.NVVM().get_ir_version()]
    module.add_named_metadata("nvvmir.version", module.add_metadata(versions))


class Driver(driver.Driver):
    def _find_api(self, name):
        if name in ("cuCtxGetDevice", "cuCtxSynchronize"):
            return getattr(self.lib, name)
        return super()._find_api(name)


if nvvm.NVVM().get_ir_version() > (1, 6, 3, 0):
    nvvm.add_ir_version = say_the_version_that_is_read
driver.driver.__class__ = Driver


@cuda.jit
def add(a, b, total):
    i = cuda.grid(1)
    if i < total.size:
        total[i] = a[i] + b[i]


@cuda.jit(device=True)
def wave(value, steps):
    for step in range(steps):
        value = value * 0.75 + 1.0 / (step + 1)
    return value


@cuda.jit
def waves(values, steps):
    for i in range(cuda.grid(1), values.size, cuda.gridsize(1)):
        values[i] = wave(values[i], steps)


@cuda.jit
def sums_of_blocks(values, sums):
    """A tree in shared memory, so that the order of the additions is fixed."""
    shared = cuda.shared.array(THREADS, numba.float64)
    i, thread = cuda.grid(1), cuda.threadIdx.x
    shared[thread] = values[i] if i < values.size else 0.0
    cuda.syncthreads()
    half = THREADS // 2
    while half > 0:
        if thread < half:
            shared[thread] += shared[thread + half]
        cuda.syncthreads()
        half //= 2
    if thread == 0:
        sums[cuda.blockIdx.x] = shared[0]


@cuda.jit
def histogram(keys, bins, highest):
    i = cuda.grid(1)
    if i < keys.size:
        cuda.atomic.add(bins, keys[i] % bins.size, 1)
        cuda.atomic.max(highest, 0, keys[i])


@cuda.jit
def products(a, b, c):
    row, column = cuda.grid(2)
    if row < c.shape[0] and column < c.shape[1]:
        total = 0.0
        for k in range(a.shape[1]):
            total += a[row, k] * b[k, column]
        c[row, column] = total


@numba.vectorize(["float32(float32, float32)", "float64(float64, float64)"], target="cuda")
def smaller_squared(a, b):
    return min(a, b) * min(a, b)


def blocks(count):
    return (count + THREADS - 1) // THREADS


def elementwise(generator):
    a, b = (generator.random(COUNT, dtype=np.float32) for _ in range(2))
    total = np.zeros_like(a)
    add[blocks(COUNT), THREADS](a, b, total)
    assert (total == a + b).all()
    show("elementwise", total)
    values = cuda.to_device(generator.random(COUNT))
    waves[64, THREADS](values, 5)
    show("device function", values.copy_to_host())


def reduction(generator):
    values = generator.random(COUNT)
    sums = cuda.device_array(blocks(COUNT))
    sums_of_blocks[blocks(COUNT), THREADS](cuda.to_device(values), sums)
    assert np.isclose(sums.copy_to_host().sum(), values.sum())
    show("reduction", sums.copy_to_host())


def atomics(generator):
    keys = generator.integers(0, 1 << 20, COUNT, dtype=np.int32)
    bins, highest = np.zeros(97, np.int32), np.zeros(1, np.int32)
    histogram[blocks(COUNT), THREADS](keys, bins, highest)
    assert (bins == np.bincount(keys % 97, minlength=97)).all() and highest[0] == keys.max()
    show("atomics", bins)


def streams(generator):
    """Two at once, with pinned memory, and an event of the one for the other."""
    both = [cuda.stream(), cuda.stream()]
    host = [cuda.pinned_array(COUNT, np.float64) for _ in both]
    device = []
    for stream, values in zip(both, host):
        values[:] = generator.random(COUNT)
        device.append(cuda.to_device(values, stream=stream))
        waves[32, THREADS, stream](device[-1], 3)
    event = cuda.event(timing=False)
    event.record(both[0])
    event.wait(both[1])
    total = cuda.device_array(COUNT, np.float64, stream=both[1])
    add[blocks(COUNT), THREADS, both[1]](device[0], device[1], total)
    total.copy_to_host(host[0], stream=both[1])
    both[1].synchronize()
    show("streams", host[0])


def matrices(generator):
    a, b = generator.random((70, 50)), generator.random((50, 90))
    c = np.zeros((70, 90))
    products[(9, 12), (8, 8)](a, b, c)
    assert np.allclose(c, a @ b)
    show("matrices", c)


def functions_of_arrays(generator):
    a, b = (generator.random(COUNT) for _ in range(2))
    found = smaller_squared(a, b)
    assert (found == np.minimum(a, b) ** 2).all()
    show("ufunc", found)


def main():
    generator = np.random.default_rng(11)
    for part in (elementwise, reduction, atomics, streams, matrices, functions_of_arrays):
        part(generator)
    print("PASS numba_kernels")


if __name__ == "__main__":
    main()
