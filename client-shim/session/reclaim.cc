#include "client-shim/session/reclaim.h"

#include <algorithm>
#include <map>

#include "client-shim/context/properties.h"
#include "client-shim/memory/device_memory.h"
#include "client-shim/support/never_destroyed.h"
#include "client-shim/support/work_thread.h"
#include "longwire/calls.h"

namespace longwire::shim {
namespace {

struct Reclaiming {
  // The allocator's lock may be held by the very thread that reads the request.
  WorkThread thread{"longwire-memory"};
  // By session and device, at the last request for unused memory.
  std::map<std::pair<ClientSession*, int>, uint64_t> free_before;
};
Reclaiming& TheReclaiming() {
  static NeverDestroyed<Reclaiming> reclaiming;
  return *reclaiming;
}

DeviceMemory* MemoryOfServerDevice(const ClientSession& session, int server_device) {
  return MemoryOf(DeviceByServerOrdinal(session, server_device));
}

void Reclaim(ClientSession& session, const wire::ReclaimRequest& request) {
  calls::lwReclaimed answer;
  answer.device = request.device;
  answer.request = request.request;
  DeviceMemory* memory = MemoryOfServerDevice(session, request.device);
  if (memory != nullptr) {
    uint64_t free = memory->FreeInChunks();
    uint64_t spare = free;
    if (request.unused != 0) {
      uint64_t& before = TheReclaiming().free_before[{&session, request.device}];
      spare = std::min(spare, before);
      before = free;
    }
    spare -= std::min(spare, request.keep);
    answer.bytes = memory->GiveBackFree(std::min(spare, request.bytes));
    const bool watch = request.bytes == 0 && request.keep != 0;
    bool watched = false;
    answer.idle = memory->FreeInChunks(watch ? request.request : 0, &watched);
    if (watched) answer.request |= wire::kWatchesFree;
  }
  session.Submit({}, answer);
}

}  // namespace

bool OnReclaim(ClientSession& session, const wire::ReclaimRequest& request) {
  auto devices = static_cast<int64_t>(session.opened().devices.size());
  if (request.device < 0 || request.device >= devices) return false;
  return TheReclaiming().thread.Post([&session, request] { Reclaim(session, request); });
}

void ReportFree(ClientSession& session, int server_device, uint64_t request) {
  wire::ReclaimRequest report{};
  report.request = request;
  report.device = server_device;
  static_cast<void>(TheReclaiming().thread.Post([&session, report] { Reclaim(session, report); }));
}

}  // namespace longwire::shim
