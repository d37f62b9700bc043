// For the tests of keepers that are killed: allocates, fills, checks and frees buffers in an order
// that its numbers decide, so that every run must read the same bytes. allocate_on ROUNDS BUFFERS
// MIB SEED: that many rounds, with at most that many buffers of up to that size. Each line that it
// reads is that many rounds more; it then says what it has. It ends with its input.
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "check.h"

namespace {

struct Buffer {
  unsigned char* memory = nullptr;
  size_t bytes = 0;
  unsigned char value = 0;
};

std::vector<Buffer> buffers;
uint64_t state = 0;
uint64_t sum = 0;

uint32_t Next() {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return static_cast<uint32_t>(state >> 33);
}

void Allocate(size_t most) {
  Buffer buffer;
  buffer.bytes = (size_t{1} + Next() % most) << 20;
  buffer.value = static_cast<unsigned char>(1 + Next() % 250);
  CHECK(cudaMalloc(&buffer.memory, buffer.bytes));
  CHECK(cudaMemset(buffer.memory, buffer.value, buffer.bytes));
  buffers.push_back(buffer);
}

// Some of its bytes, the first and the last among them.
void Check(const Buffer& buffer) {
  for (int part = 0; part < 8; ++part) {
    unsigned char byte = 0;
    CHECK(cudaMemcpy(&byte, buffer.memory + (buffer.bytes - 1) / 7 * part, 1,
                     cudaMemcpyDeviceToHost));
    EXPECT(byte == buffer.value, "a byte is %d, not %d", byte, buffer.value);
    sum = sum * 31 + byte;
  }
}

void Round(size_t most, size_t megabytes) {
  if (buffers.size() < most && Next() % 4 != 0) return Allocate(megabytes);
  if (buffers.empty()) return;
  size_t at = Next() % buffers.size();
  Check(buffers[at]);
  CHECK(cudaFree(buffers[at].memory));
  buffers[at] = buffers.back();
  buffers.pop_back();
}

}  // namespace

int main(int count, char** arguments) {
  EXPECT(count == 5, "allocate_on ROUNDS BUFFERS MIB SEED");
  size_t most = std::strtoull(arguments[2], nullptr, 10);
  size_t megabytes = std::strtoull(arguments[3], nullptr, 10);
  state = std::strtoull(arguments[4], nullptr, 10);
  CHECK(cudaFree(nullptr));
  std::printf("READY\n");
  std::fflush(stdout);
  char line[64] = "";
  const char* rounds = arguments[1];
  do {
    for (long round = std::strtol(rounds, nullptr, 10); round > 0; --round) Round(most, megabytes);
    size_t bytes = 0;
    for (const Buffer& buffer : buffers) bytes += buffer.bytes;
    std::printf("has %zu sum %llu\n", bytes, static_cast<unsigned long long>(sum));
    std::fflush(stdout);
    rounds = line;
  } while (std::fgets(line, sizeof(line), stdin) != nullptr);
  for (const Buffer& buffer : buffers) Check(buffer);
  std::printf("sum %llu\n", static_cast<unsigned long long>(sum));
  return Pass("allocate_on");
}
