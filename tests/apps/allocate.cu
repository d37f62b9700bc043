// For the tests of memory limits: allocates each size that it is given, keeps it all, and says how
// each went and what the device has left. With "hold" as last word it waits for a line of input.
#include <cstdlib>
#include <cstring>
#include <string>

#include "check.h"

int main(int count, char** arguments) {
  CHECK(cudaFree(nullptr));
  for (int i = 1; i < count && std::strcmp(arguments[i], "hold") != 0; ++i) {
    size_t bytes = std::strtoull(arguments[i], nullptr, 10);
    void* memory = nullptr;
    cudaError_t code = cudaMalloc(&memory, bytes);
    if (code == cudaSuccess) {
      // All of it is there: the last byte can be written and read.
      unsigned char value = 0;
      CHECK(cudaMemset(memory, 0x5A, bytes));
      CHECK(cudaMemcpy(&value, static_cast<char*>(memory) + bytes - 1, 1, cudaMemcpyDeviceToHost));
      EXPECT(value == 0x5A, "the last byte is %d", value);
    }
    std::printf("%zu %s\n", bytes, cudaGetErrorName(code));
  }
  if (count > 1) {
    size_t free = 0, total = 0;
    CHECK(cudaMemGetInfo(&free, &total));
    std::printf("free %zu total %zu\n", free, total);
  }
  if (count > 1 && std::strcmp(arguments[count - 1], "hold") == 0) {
    std::printf("READY\n");
    std::fflush(stdout);
    std::getchar();
  }
  return Pass("allocate");
}
