// For the tests of bytes in flight: copies of KIB each, MIB in all, behind a host function that
// waits for a line of input. All must land.
//
//   copies_behind MIB KIB pageable|pinned
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "check.h"

namespace {

std::atomic<bool> released{false};

void CUDART_CB WaitForRelease(void*) {
  while (!released) std::this_thread::yield();
}

}  // namespace

int main(int count, char** arguments) {
  size_t total = (count > 1 ? std::strtoull(arguments[1], nullptr, 10) : 1) << 20;
  size_t each = (count > 2 ? std::strtoull(arguments[2], nullptr, 10) : 64) << 10;
  bool pinned = count > 3 && std::strcmp(arguments[3], "pinned") == 0;
  unsigned char* source = nullptr;
  std::vector<unsigned char> pageable(pinned ? 0 : total);
  if (pinned) CHECK(cudaMallocHost(&source, total));
  if (!pinned) source = pageable.data();
  for (size_t i = 0; i < total; ++i) source[i] = static_cast<unsigned char>(i * 7 + i / each);
  unsigned char* device = nullptr;
  CHECK(cudaMalloc(&device, total));
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudaLaunchHostFunc(stream, WaitForRelease, nullptr));
  std::thread copies([&] {
    for (size_t at = 0; at < total; at += each) {
      CHECK(cudaMemcpyAsync(device + at, source + at, each, cudaMemcpyHostToDevice, stream));
    }
  });
  std::printf("READY\n");
  std::fflush(stdout);
  if (count > 1) std::getchar();
  released = true;
  copies.join();
  CHECK(cudaStreamSynchronize(stream));
  std::vector<unsigned char> back(total);
  CHECK(cudaMemcpy(back.data(), device, total, cudaMemcpyDeviceToHost));
  EXPECT(std::memcmp(back.data(), source, total) == 0, "the bytes differ");
  return Pass("copies_behind");
}
