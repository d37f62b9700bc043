// The driver's log of errors: what a failed call leaves there, from which place a program reads on,
// into memory, a file and a callback.
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <sstream>
#include <string>

#include "check.h"

static int heard = 0;
static std::string last_heard;

static void Hear(void* data, cudaLogLevel level, char* message, size_t length) {
  ++heard;
  last_heard.assign(message, length);
  EXPECT(data == &heard && level == cudaLogLevelError, "another callback's data");
}

static void Fail() {
  const cudaError_t failed = cudaFree(reinterpret_cast<void*>(0x1234500));
  EXPECT(failed == cudaErrorInvalidValue, "%d", failed);
  cudaGetLastError();
}

static std::string Dump(cudaLogIterator* from) {
  char buffer[25600] = {};
  size_t bytes = sizeof buffer;
  CHECK(cudaLogsDumpToMemory(from, buffer, &bytes, 0));
  EXPECT(bytes < sizeof buffer && std::strlen(buffer) == bytes, "%zu bytes", bytes);
  return {buffer, bytes};
}

static size_t Lines(const std::string& text) {
  size_t lines = 0;
  for (const char c : text) lines += c == '\n';
  return lines;
}

int main() {
  CHECK(cudaFree(nullptr));
  cudaLogIterator place;
  CHECK(cudaLogsCurrent(&place, 0));
  EXPECT(Dump(&place).empty(), "nothing failed yet");
  cudaLogsCallbackHandle callback;
  CHECK(cudaLogsRegisterCallback(Hear, &heard, &callback));
  Fail();
  cudaLogIterator second;
  CHECK(cudaLogsCurrent(&second, 0));
  Fail();
  EXPECT(heard == 2, "%d messages were heard", heard);
  EXPECT(last_heard.find("cuMemFree") != std::string::npos &&
             last_heard.find("INVALID_VALUE") != std::string::npos,
         "heard: %s", last_heard.c_str());
  CHECK(cudaLogsUnregisterCallback(callback));
  Fail();
  EXPECT(heard == 2, "an unregistered callback heard");

  const std::string all = Dump(&place), later = Dump(&second);
  EXPECT(Lines(all) == 3 && Lines(later) == 2, "%zu and %zu lines", Lines(all), Lines(later));
  EXPECT(all.find(later) != std::string::npos && all.find(last_heard) != std::string::npos,
         "other messages");
  EXPECT(Dump(&place).empty(), "the place did not move on");

  // Where there is less room, what fits of the text.
  std::string part(all.size() - 10, '\0');
  size_t bytes = part.size();
  CHECK(cudaLogsDumpToMemory(nullptr, part.data(), &bytes, 0));
  EXPECT_OF_MISTAKE(bytes <= part.size(), "%zu bytes of %zu", bytes, part.size());
  part.resize(std::strlen(part.c_str()));
  const bool first = all.compare(0, part.size(), part) == 0;
  EXPECT_OF_MISTAKE(first && part.size() + 1 >= all.size() - 10, "a part of %zu bytes: %s", bytes,
                    part.c_str());

  const std::string path = "/tmp/error_log." + std::to_string(getpid());
  CHECK(cudaLogsDumpToFile(nullptr, path.c_str(), 0));
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  unlink(path.c_str());
  EXPECT(text.str().find(all) != std::string::npos, "the file has: %s", text.str().c_str());
  const cudaError_t nowhere = cudaLogsDumpToFile(nullptr, "/no/such/folder/log", 0);
  EXPECT(nowhere == cudaErrorInvalidValue, "%d", nowhere);

  for (int i = 0; i < 1000; ++i) Fail();
  cudaLogIterator old = place;
  EXPECT_OF_MISTAKE(Dump(&old).find("[older messages are not kept]") == 0,
                    "1,000 messages were kept");
  return Pass("error_log");
}
