// For the tests of memory limits: allocates each size that it is given, keeps it all, and says how
// each went and what the device has left. The word "free" frees what it has up to there, "zeros"
// looks whether allocations from there on hold anything. With "hold" as last word it waits for a
// line of input; what follows there is done as if it had been given as another argument.
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "check.h"

namespace {

std::vector<void*> kept;
bool look_for_zeros = false;

void ExpectZeros(const void* memory, size_t bytes) {
  std::vector<unsigned char> host(bytes);
  CHECK(cudaMemcpy(host.data(), memory, bytes, cudaMemcpyDeviceToHost));
  size_t others = 0;
  for (unsigned char byte : host) others += byte != 0;
  EXPECT(others == 0, "%zu of %zu bytes are another's", others, bytes);
}

void Allocate(size_t bytes) {
  void* memory = nullptr;
  cudaError_t code = cudaMalloc(&memory, bytes);
  if (code == cudaSuccess) {
    kept.push_back(memory);
    if (look_for_zeros) ExpectZeros(memory, bytes);
    // All of it is there: the last byte can be written and read.
    unsigned char value = 0;
    CHECK(cudaMemset(memory, 0x5A, bytes));
    CHECK(cudaMemcpy(&value, static_cast<char*>(memory) + bytes - 1, 1, cudaMemcpyDeviceToHost));
    EXPECT(value == 0x5A, "the last byte is %d", value);
  }
  std::printf("%zu %s\n", bytes, cudaGetErrorName(code));
}

void Do(const char* word) {
  if (std::strcmp(word, "zeros") == 0) {
    look_for_zeros = true;
  } else if (std::strcmp(word, "free") == 0) {
    for (void* memory : kept) CHECK(cudaFree(memory));
    kept.clear();
  } else {
    Allocate(std::strtoull(word, nullptr, 10));
  }
}

void SayWhatIsFree() {
  size_t free = 0, total = 0;
  CHECK(cudaMemGetInfo(&free, &total));
  std::printf("free %zu total %zu\n", free, total);
}

}  // namespace

int main(int count, char** arguments) {
  CHECK(cudaFree(nullptr));
  bool hold = count > 1 && std::strcmp(arguments[count - 1], "hold") == 0;
  for (int i = 1; i < count - (hold ? 1 : 0); ++i) Do(arguments[i]);
  if (count > 1) SayWhatIsFree();
  if (hold) {
    std::printf("READY\n");
    std::fflush(stdout);
    char line[64] = "";
    while (std::fgets(line, sizeof(line), stdin) != nullptr && line[0] != '\n') {
      line[std::strcspn(line, "\n")] = '\0';
      Do(line);
      SayWhatIsFree();
      std::fflush(stdout);
    }
  }
  return Pass("allocate");
}
