#include "client-shim/connect/open_servers.h"

#include <algorithm>
#include <chrono>

#include "client-shim/connect/several_servers.h"
#include "client-shim/connect/wait_for_room.h"

namespace longwire::shim {
namespace {

constexpr int kPlacings = 3;  // to open what a pool has placed on several hosts
// Devices of a session that was given up are free again by then.
constexpr std::chrono::seconds kComesBack{5};

// Stops at the first one that does not open: then it has no parts, or a code.
std::vector<SessionParts> OpenAll(const std::vector<Options>& servers,
                                  const std::vector<wire::Window>& windows, std::string* sentence) {
  std::vector<SessionParts> opened;
  std::vector<wire::Window> used;
  for (size_t i = 0; i < servers.size(); ++i) {
    const std::vector<wire::Window> left = LeftOf(windows, used);
    SessionParts parts;
    // The sessions that are open already end with their sockets.
    if (!OpenSessionOrWait(servers[i], left, &parts, sentence)) return {};
    parts.server = static_cast<int>(i);
    if (servers.size() > 1) parts.name = servers[i].server;
    for (const auto& device : parts.reply.devices) used.push_back(device.window);
    opened.push_back(std::move(parts));
    if (opened.back().reply.code != CUDA_SUCCESS) break;
  }
  return opened;
}

// Whose place is to be had elsewhere; empty: all are open, or nobody opens it.
std::string HostThatFailed(const std::vector<wire::Place>& places,
                           const std::vector<SessionParts>& opened) {
  if (opened.empty()) return {};
  const int32_t code = opened.back().reply.code;
  const bool elsewhere = code == CUDA_ERROR_DEVICE_UNAVAILABLE || code == CUDA_ERROR_NO_DEVICE;
  return elsewhere ? places[opened.size() - 1].host : "";
}

}  // namespace

std::vector<wire::Window> LeftOf(const std::vector<wire::Window>& windows,
                                 const std::vector<wire::Window>& used) {
  std::vector<wire::Window> left;
  for (const wire::Window& window : windows) {
    const uint64_t end = window.base + window.bytes;
    uint64_t from = window.base;
    for (const wire::Window& one : used) {
      const bool inside = one.base >= window.base && one.base < end;
      if (inside) from = std::max(from, one.base + one.bytes);
    }
    if (from < end) left.push_back({from, end - from});
  }
  return left;
}

std::vector<SessionParts> OpenServers(const Options& options,
                                      const std::vector<wire::Window>& windows,
                                      std::string* sentence) {
  const std::vector<Options> servers = ServersOf(options, sentence);
  std::vector<SessionParts> opened = OpenAll(servers, windows, sentence);
  Options asked = options;
  for (int attempt = 1; opened.size() == 1 && !opened[0].places.empty(); ++attempt) {
    const std::vector<wire::Place> places = std::move(opened[0].places);
    opened = OpenAll(ServersAt(options, places), windows, sentence);
    const std::string failed = HostThatFailed(places, opened);
    if (failed.empty() || attempt == kPlacings) break;
    if (options.log) Say("%s did not open what was placed there; asking again", failed.c_str());
    opened.clear();  // the other hosts get theirs back
    asked.avoid += (asked.avoid.empty() ? "" : ",") + failed;
    asked.wait = std::max(options.wait.value_or(kComesBack), kComesBack);
    opened = OpenAll({asked}, windows, sentence);
  }
  return opened;
}

}  // namespace longwire::shim
