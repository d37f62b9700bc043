// What random programs do with memory of host and device, and what must come of it: operations in
// an order that is only known in part, some of which are held up until the program lets them go.
//
// The outcome is one and the same because of two rules. Operations that touch the same bytes, one
// of them writing, come behind each other. The host touches bytes only if every unfinished
// operation on them is still held.
#pragma once

#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

namespace model {

struct Access {
  int buffer;
  size_t offset, bytes;
  bool writes;

  bool Conflicts(const Access& other) const {
    return buffer == other.buffer && (writes || other.writes) &&
           offset < other.offset + other.bytes && other.offset < offset + bytes;
  }
};

using Accesses = std::vector<Access>;

class Model {
 public:
  using Bytes = std::vector<unsigned char>;

  explicit Model(std::vector<size_t> sizes) {
    for (size_t size : sizes) memory_.emplace_back(size);
  }

  Bytes& memory(int buffer) { return memory_[buffer]; }

  // Whether the operation may be queued behind these.
  bool MayQueue(const std::vector<int>& after, const Accesses& accesses) const {
    std::vector<bool> before(operations_.size());
    for (int each : after) MarkBefore(each, &before);
    for (size_t i = 0; i < operations_.size(); ++i) {
      if (!before[i] && operations_[i].state != kFinished && Conflict(operations_[i], accesses))
        return false;
    }
    return true;
  }

  // `act` changes the model's memory when its turn comes. `held`: not before Release.
  int Queue(std::vector<int> after, Accesses accesses, std::function<void()> act,
            bool held = false) {
    operations_.push_back({std::move(after), std::move(accesses), std::move(act), held, kWaits});
    Settle();
    return static_cast<int>(operations_.size()) - 1;
  }

  void Release(int operation) {
    operations_[operation].held = false;
    Settle();
  }

  // Whether the device gets there without help of the program.
  bool Runs(int operation) const { return operations_[operation].state != kWaits; }

  bool AllFinished(const std::vector<int>& operations) const {
    for (int each : operations) {
      if (operations_[each].state != kFinished) return false;
    }
    return true;
  }

  // The program has waited for it.
  void Finish(int operation) {
    std::vector<bool> before(operations_.size());
    MarkBefore(operation, &before);
    for (size_t i = 0; i < operations_.size(); ++i) {
      if (before[i]) operations_[i].state = kFinished;
    }
  }

  bool HostMay(const Access& access) const {
    for (const Operation& operation : operations_) {
      if (operation.state == kRuns && Conflict(operation, {access})) return false;
    }
    return true;
  }

 private:
  enum State { kWaits, kRuns, kFinished };
  struct Operation {
    std::vector<int> after;
    Accesses accesses;
    std::function<void()> act;
    bool held;
    State state;
  };

  static bool Conflict(const Operation& operation, const Accesses& accesses) {
    for (const Access& one : operation.accesses) {
      for (const Access& other : accesses) {
        if (one.Conflicts(other)) return true;
      }
    }
    return false;
  }

  void MarkBefore(int operation, std::vector<bool>* marked) const {
    if ((*marked)[operation]) return;
    (*marked)[operation] = true;
    for (int each : operations_[operation].after) MarkBefore(each, marked);
  }

  // An operation comes after those that it is queued behind, so one look in their order does.
  void Settle() {
    for (Operation& operation : operations_) {
      bool ready = operation.state == kWaits && !operation.held;
      for (int each : operation.after) ready = ready && operations_[each].state != kWaits;
      if (!ready) continue;
      operation.act();
      operation.state = kRuns;
    }
  }

  std::vector<Bytes> memory_;
  std::vector<Operation> operations_;
};

}  // namespace model
