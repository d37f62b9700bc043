// Kernels that launch kernels.
__device__ char text[64];

__global__ void Count(unsigned* counts, int index) { atomicAdd(counts + index, 1); }

__global__ void LaunchEach(unsigned* counts) {
  int index = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (index % 2 == 0) {
    Count<<<1, 1>>>(counts, index);
  } else {
    Count<<<1, 1, 0, cudaStreamFireAndForget>>>(counts, index);
  }
}

// order[0] is the number of values that follow.
__device__ void Say(int* order, int what) { order[1 + order[0]++] = what; }
__global__ void Sayer(int* order, int what) { Say(order, what); }
__global__ void Parent(int* order, int what) {
  Sayer<<<1, 1, 0, cudaStreamTailLaunch>>>(order, what + 9);
  Sayer<<<1, 1>>>(order, what + 1);
  Say(order, what);
}
__global__ void Grandparent(int* order) {
  cudaStream_t stream;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  Parent<<<1, 1, 0, cudaStreamTailLaunch>>>(order, 90);
  Parent<<<1, 1, 0, stream>>>(order, 10);
  Parent<<<1, 1>>>(order, 20);
  cudaStreamDestroy(stream);
  Say(order, 0);
}

__global__ void Descend(int* out) {
  ++out[0];
  Descend<<<1, 1>>>(out);
  out[1] = cudaGetLastError();
}

__global__ void LaunchMany(unsigned* counts, int many) {
  for (int i = 0; i < many; ++i) {
    Count<<<1, 1>>>(counts, 0);
    cudaError_t error = cudaGetLastError();
    if (error != cudaSuccess) counts[1] = error, ++counts[2];
  }
}

__global__ void MakeErrors(int* out) {
  int thread = static_cast<int>(threadIdx.x);
  if (thread == 1) Count<<<1, 2000>>>(nullptr, 0);
  if (thread == 2) Count<<<0, 1>>>(nullptr, 0);
  if (thread == 3) Count<<<1, 1, 0, reinterpret_cast<cudaStream_t>(77)>>>(nullptr, 0);
  out[3 * thread] = cudaPeekAtLastError();
  out[3 * thread + 1] = cudaGetLastError();
  out[3 * thread + 2] = cudaGetLastError();
  if (thread != 3) return;
  const char* said = cudaGetErrorString(static_cast<cudaError_t>(out[3 * thread]));
  for (int i = 0; i < 63 && said[i] != 0; ++i) text[i] = said[i];
}

__global__ void CopyAndFill(int* data) {
  cudaMemsetAsync(data, 1, 4, 0);
  cudaMemcpyAsync(data + 1, data, 4, cudaMemcpyDeviceToDevice, 0);
  Count<<<1, 1>>>(reinterpret_cast<unsigned*>(data), 0);
  cudaMemcpyAsync(data + 2, data, 4, cudaMemcpyDeviceToDevice, 0);
}

__global__ void FillAt(int* data) { cudaMemsetAsync(data, 1, 4, 0); }
__global__ void LaunchFault(int* order) {
  Sayer<<<1, 1>>>(order, 1);
  Sayer<<<1, 1>>>(nullptr, 2);
  Sayer<<<1, 1>>>(order, 3);
}

__global__ void Breed() {
  Breed<<<1, 1>>>();
  Breed<<<1, 1>>>();
}

__global__ void Unknown(int* out) {
  asm("vadd.s32.s32.s32.sat %0, %1, %1;" : "=r"(out[0]) : "r"(out[1]));
}
__global__ void LaunchUnknown(int* out) { Unknown<<<1, 1>>>(out); }
