"""CuPy: elementwise work, a kernel of one's own, Fourier transforms and a solver."""
import cupy

from shown import show

KERNEL = r"""
extern "C" __global__ void scale(const float* in, float* out, float by, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = in[i] * by + i;
}
"""


def main():
    random = cupy.random.RandomState(4)
    a = random.standard_normal((512, 512)).astype(cupy.float32)
    show("elementwise", cupy.asnumpy(cupy.tanh(a) * 2 + cupy.sqrt(cupy.abs(a))))
    show("sum", cupy.asnumpy(a.sum(axis=0)))
    scaled = cupy.empty_like(a)
    cupy.RawKernel(KERNEL, "scale")((1024,), (256,), (a, scaled, cupy.float32(3), a.size))
    expected = a.ravel() * cupy.float32(3) + cupy.arange(a.size, dtype=cupy.float32)
    assert cupy.allclose(scaled.ravel(), expected)
    show("kernel", cupy.asnumpy(scaled))
    spectrum = cupy.fft.fft2(a)
    show("spectrum", cupy.asnumpy(spectrum))
    assert cupy.allclose(cupy.fft.ifft2(spectrum).real, a, atol=1e-4)
    system = a.astype(cupy.float64) + 40 * cupy.eye(512)
    solution = cupy.linalg.solve(system, a[:, 0].astype(cupy.float64))
    assert cupy.allclose(system @ solution, a[:, 0])
    show("solution", cupy.asnumpy(solution))
    show("values", cupy.asnumpy(cupy.linalg.eigvalsh(system + system.T)))
    show("sorted", cupy.asnumpy(cupy.sort(a.ravel())))
    print("PASS cupy_parts")


if __name__ == "__main__":
    main()
