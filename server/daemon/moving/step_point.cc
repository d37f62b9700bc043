#include "server/daemon/moving/step_point.h"

#if LONGWIRE_GUARD_SWITCHES

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

#include "wire/socket.h"

namespace longwire::daemon {

void AtStep(std::string_view step) {
  constexpr std::chrono::seconds kLongest{120};
  constexpr std::chrono::milliseconds kLook{5};
  const char* folder = std::getenv("LONGWIRE_RUNTIME_DIR");
  if (folder == nullptr) return;
  const std::string wish = std::string(folder) + "/stop-at-" + std::string(step);
  if (access(wish.c_str(), F_OK) != 0) return;
  const std::string said = std::string(folder) + "/at-" + std::string(step);
  wire::Descriptor(open(said.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  const auto deadline = std::chrono::steady_clock::now() + kLongest;
  while (access(wish.c_str(), F_OK) == 0 && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(kLook);
  }
}

}  // namespace longwire::daemon

#endif
