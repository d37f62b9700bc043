// For printing_test: a kernel that prints (-DPRINTS) or does not.
#include <cstdio>

__global__ void Count(int* number) {
#ifdef PRINTS
  if (*number < 0) printf("below zero\n");
#endif
  atomicAdd(number, 1);
}
