#include "client-shim/connect/connection.h"

#include <cerrno>
#include <cstring>

#include "base/reason.h"
#include "client-shim/connect/link_place.h"

namespace longwire::shim {
namespace {

constexpr const char* kLocal = "unix:";

}  // namespace

bool IsLocal(const Options& options) { return options.server.rfind(kLocal, 0) == 0; }

wire::Descriptor ConnectToServer(const Options& options,
                                 std::chrono::steady_clock::time_point deadline,
                                 std::string* sentence) {
  if (IsLocal(options)) {
    std::string path = options.server.substr(strlen(kLocal));
    wire::Descriptor socket = wire::ConnectLocal(path);
    if (!socket.valid()) *sentence = "nobody answers at " + path + ": " + base::Reason(errno);
    return socket;
  }
  LinkPlace place;
  if (!FindLinkPlace(options, &place, sentence)) return {};
  return ConnectToLink(place, deadline, sentence);
}

}  // namespace longwire::shim
