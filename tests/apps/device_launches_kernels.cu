// The other file of device_launches.cu: kernels that its kernels launch.
__global__ void Mark(unsigned* counts, int index, double by) {
  atomicAdd(&counts[index], static_cast<unsigned>(by * 4));
}

__global__ void Sum(const unsigned* counts, int count, unsigned* sum) {
  for (int i = threadIdx.x; i < count; i += blockDim.x) atomicAdd(sum, counts[i]);
}
