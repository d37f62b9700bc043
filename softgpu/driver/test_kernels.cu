// Kernels for the driver half's tests.
extern "C" __constant__ int constant_table[4] = {10, 20, 30, 40};
extern "C" __device__ int counter = 7;

extern "C" __global__ void Store(unsigned* target, unsigned value) { *target = value; }

extern "C" __global__ void Scale(float* data, int count, float factor) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) data[i] *= factor;
}

extern "C" __global__ void AddTable(int* target) {
  target[threadIdx.x] = constant_table[threadIdx.x] + counter;
}

extern "C" __global__ void Increment(unsigned* target) { atomicAdd(target, 1); }

// Writes what dynamic shared memory carried from one thread to its neighbour.
extern "C" __global__ void Rotate(int* target) {
  extern __shared__ int shared[];
  shared[threadIdx.x] = static_cast<int>(threadIdx.x);
  __syncthreads();
  target[threadIdx.x] = shared[(threadIdx.x + 1) % blockDim.x];
}

// Spins until the flag is set: a kernel that never ends by itself.
extern "C" __global__ void Spin(volatile unsigned* flag) {
  while (*flag == 0) {
  }
}

extern "C" __global__ void AddTexel(cudaTextureObject_t from, cudaSurfaceObject_t to) {
  int x = static_cast<int>(threadIdx.x), old;
  surf2Dread(&old, to, 4 * x, 0);
  surf2Dwrite(old + tex2D<int>(from, x, 0), to, 4 * x, 0);
}

// One thread stores the value in every word, from the last one to the first.
extern "C" __global__ void StoreAll(volatile unsigned* words, unsigned count, unsigned value) {
  for (unsigned i = count; i-- > 0;) words[i] = value;
}

// Until the flag is set: looks from the last word to the first, and counts the passes, and those in
// which a word was less than one that was read before it.
extern "C" __global__ void LookAtAll(volatile unsigned* words, unsigned count,
                                     volatile unsigned* flag, unsigned* seen) {
  unsigned looks = 0, torn = 0;
  while (*flag == 0) {
    unsigned last = 0;
    bool less = false;
    for (unsigned i = count; i-- > 0;) {
      const unsigned word = words[i];
      less = less || word < last;
      last = word;
    }
    torn += less;
    ++looks;
  }
  seen[0] = looks;
  seen[1] = torn;
}

// Counts the word up to `last`, every second number; the other ones come from elsewhere.
extern "C" __global__ void Alternate(volatile unsigned* word, unsigned first, unsigned last) {
  for (unsigned next = first; next < last; next += 2) {
    while (*word != next) {
    }
    *word = next + 1;
  }
}
