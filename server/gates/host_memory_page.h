// One page of shared memory for each tenant: how much of the host's memory the workers of its
// sessions hold. The daemon makes it, sets the limit and gives each session a slot; each worker
// writes its own total there and compares the sum with the limit before it takes more.
//
// Programs never see it. A worker could falsify it: then its tenant's limit does not hold, and the
// walls around the worker do.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>

#include "wire/socket.h"

namespace longwire::gates {

class HostMemoryPage {
 public:
  static constexpr uint32_t kSlots = 4096;  // sessions at once

  // nullptr on failure.
  static std::shared_ptr<HostMemoryPage> Create();
  // nullptr if the descriptor is no such page.
  static std::shared_ptr<HostMemoryPage> Map(wire::Descriptor memory);
  ~HostMemoryPage();
  HostMemoryPage(const HostMemoryPage&) = delete;
  HostMemoryPage& operator=(const HostMemoryPage&) = delete;

  std::atomic<uint64_t>& limit() { return content_->limit; }  // bytes
  // Bytes of one session.
  std::atomic<uint64_t>& used(uint32_t slot) { return content_->used[slot % kSlots]; }
  // The slots that were ever used are below this.
  std::atomic<uint32_t>& slots() { return content_->slots; }
  // The session of `slot` goes on for that of `former`, which ends: of both the larger one counts.
  void GoesOnFor(uint32_t slot, uint32_t former) { content_->former[slot % kSlots] = former + 1; }
  // The slot is nobody's.
  void Vacate(uint32_t slot);
  uint64_t Sum() const;
  int descriptor() const { return memory_.get(); }

 private:
  struct Content {
    uint64_t magic = 0;
    std::atomic<uint64_t> limit{UINT64_MAX};
    std::atomic<uint32_t> slots{0};
    std::atomic<uint64_t> used[kSlots] = {};
    std::atomic<uint32_t> former[kSlots] = {};  // slot + 1; 0: none
  };
  HostMemoryPage() = default;
  bool Map();

  wire::Descriptor memory_;
  Content* content_ = nullptr;
};

// From the daemon to a worker whose session it has opened, over its control socket, with the page's
// descriptor. A worker of an earlier release ignores it.
struct HostMemoryTerms {
  static constexpr uint32_t kKind = 111;
  uint32_t slot = 0;
  uint64_t session_limit = UINT64_MAX;  // bytes
  uint32_t modules = UINT32_MAX;        // of the session at once
  std::string tenant;
  auto Fields() { return std::tie(slot, session_limit, modules, tenant); }
};

}  // namespace longwire::gates
