// States that are not complete yet, or had to be kept for the next border of work, because the
// device has no room for what would store them as a whole. By the mirrors' streams in which they
// come. Log thread only, but for what is said.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>

#include "server/worker/states/compared_look.h"
#include "server/worker/states/whole_state.h"

namespace longwire::worker {

struct WholeLook;  // calls/memory/memory_state.h

class KeptStates {
 public:
  struct Kept {
    std::shared_ptr<WholeState> state;       // null: none
    bool whole = false;                      // its last part has come
    bool late = false;                       // kept for the border
    bool asked = false;                      // to be stored: a call is queued that does it
    std::shared_ptr<WholeLook> look;         // that is not answered yet
    std::shared_ptr<ComparedLook> compared;  // the same, by comparing
  };
  Kept& Of(uint64_t stream) { return streams_[stream]; }
  std::unordered_map<uint64_t, Kept>& all() { return streams_; }

  void Open(Kept& kept, std::shared_ptr<WholeState> state) {
    kept.state = std::move(state);
    ++states_;
  }
  void KeepForBorder(Kept& kept) {
    if (!std::exchange(kept.late, true)) ++late_;
  }
  // Takes it out. If it was late, work waits until Arrived.
  std::shared_ptr<WholeState> Take(Kept& kept, bool* late) {
    *late = std::exchange(kept.late, false);
    kept.asked = kept.whole = false;
    if (kept.state != nullptr) --states_;
    return std::move(kept.state);
  }
  // Any thread: it is in the device's memory, or nobody can have it any more.
  void Arrived(bool late) { late_ -= late ? 1 : 0; }
  void Drop(const Mirror& mirror) {
    for (auto& [stream, kept] : streams_) {
      if (kept.state != nullptr && !kept.whole) kept.state->Drop(mirror);
    }
  }
  // Its look will not be answered.
  void DropLook(uint64_t stream) {
    auto found = streams_.find(stream);
    if (found == streams_.end()) return;
    found->second.look.reset();
    found->second.compared.reset();
  }
  // The stream ends, and what was for it.
  void Forget(uint64_t stream) {
    auto found = streams_.find(stream);
    if (found == streams_.end()) return;
    bool late = false;
    Take(found->second, &late);
    Arrived(late);
    streams_.erase(found);
  }

  // Any thread: whether there are states, and such that work has to wait for.
  bool any() const { return states_ != 0; }
  bool any_late() const { return late_ != 0; }

 private:
  std::unordered_map<uint64_t, Kept> streams_;
  std::atomic<int> states_{0}, late_{0};
};

}  // namespace longwire::worker
