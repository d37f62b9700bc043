// The other file of separate_parts.cu.
__constant__ int kOffset;

__device__ int Twice(int value) { return 2 * value; }
