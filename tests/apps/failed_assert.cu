// The text of a failed assert reaches the program's standard error before the error is reported.
#include <unistd.h>

#include <cassert>
#include <string>

#include "check.h"

__global__ void Check(int value) { assert(value < 5 && "it is small"); }

int main() {
  CHECK(cudaFree(nullptr));
  int ends[2];
  EXPECT(pipe(ends) == 0, "no pipe");
  int saved = dup(STDERR_FILENO);
  dup2(ends[1], STDERR_FILENO);
  Check<<<1, 1>>>(4);
  Check<<<1, 1>>>(7);
  cudaError_t code = cudaDeviceSynchronize();
  dup2(saved, STDERR_FILENO);
  close(ends[1]);
  EXPECT(code == cudaErrorAssert, "%d", static_cast<int>(code));
  char bytes[4096];
  ssize_t got = read(ends[0], bytes, sizeof(bytes));
  std::string text(bytes, got < 0 ? 0 : static_cast<size_t>(got));
  for (const char* part : {"failed_assert.cu:", "Check(int)", "thread: [0,0,0]", "it is small"}) {
    EXPECT(text.find(part) != std::string::npos, "no '%s' in: %s", part, text.c_str());
  }
  return Pass("failed_assert");
}
