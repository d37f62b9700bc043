// The memory of a policy that several processes run: whether it has ended and why, who has taken
// it, what its runs took, and its maps. The daemon makes it; keepers map it. Nobody can make it
// smaller, and nothing in it is relied on: whoever writes nonsense there ends no other process. No
// locks: a process that dies while it writes leaves nobody waiting.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "wire/socket.h"

namespace longwire::policy {

class Store {
 public:
  // `words` of maps, zero at first. Null with a sentence if there is no memory.
  static std::shared_ptr<Store> Create(size_t words, std::string* sentence);
  // That of another process; null with a sentence if it is none of this size.
  static std::shared_ptr<Store> Map(wire::Descriptor memory, size_t words, std::string* sentence);
  // Ends the policy whose memory this is, whatever its maps are: a process cannot run it.
  static void EndAt(wire::Descriptor memory, const std::string& why);
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  ~Store();

  // The policy runs no more. True for the first who says so.
  bool End(const std::string& why);
  bool ended() const { return head_->ended.load(std::memory_order_relaxed) != 0; }
  // Empty while it runs, and for the moment in which it is written.
  std::string why_ended() const;

  // A keeper can run it: of this device, by the number that its warden knows it by. False: there is
  // no room for that device.
  bool Take(uint32_t device, uint64_t keeper);
  bool IsTakenBy(uint32_t device, uint64_t keeper) const;

  // Two processes that count at once may count one.
  std::atomic<uint64_t>& runs() { return head_->runs; }
  std::atomic<uint64_t>& longest() { return head_->longest; }  // ticks of the processor's counter
  std::span<std::atomic<uint64_t>> words() { return {words_, count_}; }
  int descriptor() const { return memory_.get(); }

 private:
  static constexpr size_t kWhyBytes = 488;
  static constexpr uint32_t kDevices = 64;  // of a host
  struct Head {
    std::atomic<uint32_t> ended;  // 1: says why soon, 2: has said why
    std::atomic<uint32_t> why_bytes;
    std::atomic<uint64_t> runs, longest;
    char why[kWhyBytes];
    std::atomic<uint64_t> takers[kDevices];  // 0: none yet
  };
  Store(wire::Descriptor memory, void* at, size_t words);

  wire::Descriptor memory_;
  Head* const head_;
  std::atomic<uint64_t>* const words_;
  const size_t count_;
};

}  // namespace longwire::policy
