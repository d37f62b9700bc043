#include "client-shim/connect/open_servers.h"

#include <algorithm>

#include "client-shim/connect/several_servers.h"
#include "client-shim/connect/wait_for_room.h"

namespace longwire::shim {

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
  std::vector<SessionParts> opened(servers.size());
  std::vector<wire::Window> used;
  for (size_t i = 0; i < servers.size(); ++i) {
    const std::vector<wire::Window> left = LeftOf(windows, used);
    // The sessions that are open already end with their sockets.
    if (!OpenSessionOrWait(servers[i], left, &opened[i], sentence)) return {};
    opened[i].server = static_cast<int>(i);
    if (servers.size() > 1) opened[i].name = servers[i].server;
    if (opened[i].reply.code != CUDA_SUCCESS) break;
    for (const auto& device : opened[i].reply.devices) used.push_back(device.window);
  }
  return opened;
}

}  // namespace longwire::shim
