#include "client-shim/session/fault_note.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>

#include "base/environment.h"
#include "wire/descriptors.h"

namespace longwire::shim {
namespace {

constexpr size_t kLongestLine = 500;

}  // namespace

void NoteFault(int code, const std::string& text) {
  static std::atomic<bool> noted{false};
  const char* path = base::Environment("LONGWIRE_FAULT_FILE");
  if (path == nullptr || noted.exchange(true)) return;
  std::string line = "error " + std::to_string(code) + ": " + text;
  line.resize(std::min(line.size(), kLongestLine));
  std::ranges::replace(line, '\n', ' ');
  line += '\n';
  // Made by who set the variable: it is never created here.
  const wire::Descriptor file = wire::OpenFile(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
  if (!file.valid()) return;
  if (write(file.get(), line.data(), line.size()) < 0) {
    std::fprintf(stderr, "longwire: the fault cannot be written to %s\n", path);
  }
}

}  // namespace longwire::shim
