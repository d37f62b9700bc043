// The kernels that the driver-API programs load as a fat binary and as a cubin.
extern "C" __device__ int offset = 3;

extern "C" __global__ void Scale(const int* input, int* output, int factor, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) output[i] = input[i] * factor + offset;
}
