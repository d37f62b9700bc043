// The pinned host memory to which device memory is swapped: which part holds which session's data.
// It does not access the memory; the swap thread copies and scrubs.
//
// A freed part still holds its session's data. The same session may get it again as it is, another
// one only after scrubbing. Parts of ended sessions are scrubbed ahead of need.
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
  bool clear = false;  // holds another session's data: scrub it before use
};

class HostPool {
 public:
  // Memory is handed out in multiples of `slot` bytes.
  explicit HostPool(uint64_t slot) : slot_(slot) {}

  // Adds zeroed memory.
  void Add(std::byte* data, uint64_t bytes);
  uint64_t bytes() const { return slots_ * slot_; }
  uint64_t used() const { return used_ * slot_; }
  // Bytes that Take can allocate.
  uint64_t room() const { return bytes() - used() - clearing_ * slot_; }

  // Allocates parts of `bytes` bytes in all for the worker; empty if there is too little.
  std::vector<HostPart> Take(uint64_t worker, uint64_t bytes);
  // Worker 0: the worker has ended.
  void Free(uint64_t worker, const std::vector<HostPart>& parts);
  // The worker has ended: its freed parts are to be scrubbed.
  void Gone(uint64_t worker);

  // Parts to scrub next, a bounded amount; Cleared returns them.
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
  std::map<uint32_t, std::byte*> regions_;   // address by first slot
  std::map<std::byte*, uint32_t> first_of_;  // first slot by address
  uint32_t slots_ = 0;
  Slots clean_;
  Slots left_;                       // freed, of ended workers
  std::map<uint64_t, Slots> freed_;  // freed, of living workers
  uint64_t used_ = 0;                // slots
  uint64_t clearing_ = 0;            // slots
};

}  // namespace longwire::keeper
