// Offers 1 MiB of memory to other programs, or takes what one offered.
//
//   ipc_handle offer        prints the handle in hexadecimal, READY, and waits for its input to end
//   ipc_handle take HANDLE  prints what opening it gave, and the first word of the memory
#include <string>

#include "check.h"

static int Offer() {
  unsigned* values;
  cudaIpcMemHandle_t handle;
  CHECK(cudaMalloc(&values, 1 << 20));
  CHECK(cudaMemset(values, 0x77, 1 << 20));
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaIpcGetMemHandle(&handle, values));
  for (const char byte : handle.reserved) std::printf("%02x", static_cast<unsigned char>(byte));
  std::printf("\nREADY\n");
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  return Pass("ipc_handle");
}

static int Take(const std::string& text) {
  cudaIpcMemHandle_t handle = {};
  EXPECT(text.size() == 2 * sizeof handle.reserved, "a handle of %zu digits", text.size());
  for (size_t i = 0; i < sizeof handle.reserved; ++i) {
    handle.reserved[i] = static_cast<char>(std::stoi(text.substr(2 * i, 2), nullptr, 16));
  }
  void* memory = nullptr;
  const cudaError_t opened = cudaIpcOpenMemHandle(&memory, handle, cudaIpcMemLazyEnablePeerAccess);
  std::printf("%s\n", cudaGetErrorName(opened));
  if (opened == cudaSuccess) {
    unsigned word = 0;
    CHECK(cudaMemcpy(&word, memory, sizeof word, cudaMemcpyDeviceToHost));
    std::printf("%08x\n", word);
  }
  return Pass("ipc_handle");
}

int main(int count, char** arguments) {
  const std::string what = count > 1 ? arguments[1] : "";
  if (what == "offer") return Offer();
  EXPECT(what == "take" && count == 3, "usage: ipc_handle offer | take HANDLE");
  return Take(arguments[2]);
}
