// The host's pinned memory into which device memory is moved: which parts hold whose bytes. No
// memory is touched here; the swap thread copies and clears.
//
// A part that was given free holds its session's bytes until it is cleared: that session may have
// it again as it is, others after it was cleared. What ended sessions left is cleared without need.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

namespace longwire::keeper {

struct HostPart {
  std::byte* data = nullptr;
  uint64_t bytes = 0;
  bool clear = false;  // it holds another session's bytes: to be cleared before anything else
};

class HostPool {
 public:
  // Memory is handed out in multiples of `slot` bytes.
  explicit HostPool(uint64_t slot) : slot_(slot) {}

  // More memory, zeros.
  void Add(std::byte* data, uint64_t bytes);
  uint64_t bytes() const { return slots_ * slot_; }
  uint64_t used() const { return used_ * slot_; }
  // Bytes that Take can give.
  uint64_t room() const { return bytes() - used() - clearing_ * slot_; }

  // Parts of `bytes` bytes in all for the worker; none if there is too little.
  std::vector<HostPart> Take(uint64_t worker, uint64_t bytes);
  // Worker 0: of one that is gone.
  void Free(uint64_t worker, const std::vector<HostPart>& parts);
  // The worker is gone: what it left is to be cleared.
  void Gone(uint64_t worker);

  // Parts to clear next, a bounded amount; Cleared gives them back.
  std::vector<HostPart> NextClears();
  void Cleared(const std::vector<HostPart>& parts);
  uint64_t to_clear() const { return (left_.size() + clearing_) * slot_; }

 private:
  using Slots = std::set<uint32_t>;
  static constexpr size_t kClearAtOnce = 64;  // slots

  bool TakeFrom(Slots& slots, uint64_t* wanted, bool clear, std::vector<HostPart>* parts);
  void Append(uint32_t slot, bool clear, std::vector<HostPart>* parts) const;
  template <class Each>
  void ForSlots(const std::vector<HostPart>& parts, Each each) const;

  const uint64_t slot_;
  std::map<uint32_t, std::byte*> regions_;   // by their first slot
  std::map<std::byte*, uint32_t> first_of_;  // and that by their address
  uint32_t slots_ = 0;
  Slots clean_;
  Slots left_;                       // of workers that are gone
  std::map<uint64_t, Slots> freed_;  // of living workers
  uint64_t used_ = 0;                // slots
  uint64_t clearing_ = 0;            // slots
};

}  // namespace longwire::keeper
