#include "client-shim/connect/connection.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "base/reason.h"
#include "client-shim/connect/link_place.h"

namespace longwire::shim {
namespace {

constexpr const char* kLocal = "unix:";

constexpr std::chrono::milliseconds kConnectPause{5};  // between attempts to connect

// A daemon that is restarted leaves its socket to the next one, and is away for a moment.
wire::Descriptor ConnectToDaemon(const std::string& path) {
  constexpr std::chrono::milliseconds kRestartPatience{800};
  const auto end = std::chrono::steady_clock::now() + kRestartPatience;
  wire::Descriptor socket = wire::ConnectLocal(path);
  while (!socket.valid() && errno == ECONNREFUSED && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(kConnectPause);
    socket = wire::ConnectLocal(path);
  }
  return socket;
}

}  // namespace

bool IsLocal(const Options& options) { return options.server.rfind(kLocal, 0) == 0; }

wire::Descriptor ConnectToServer(const Options& options,
                                 std::chrono::steady_clock::time_point deadline,
                                 std::string* sentence) {
  if (IsLocal(options)) {
    std::string path = options.server.substr(strlen(kLocal));
    wire::Descriptor socket = ConnectToDaemon(path);
    if (!socket.valid()) *sentence = "nobody answers at " + path + ": " + base::Reason(errno);
    return socket;
  }
  LinkPlace place;
  if (!FindLinkPlace(options, &place, sentence)) return {};
  return ConnectToLink(place, deadline, sentence);
}

}  // namespace longwire::shim
