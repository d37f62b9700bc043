#include "client-shim/graph/exec_changes.h"

#include <atomic>
#include <unordered_map>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "client-shim/connect/options.h"
#include "client-shim/entry/entry.h"
#include "client-shim/support/never_destroyed.h"
#include "wire/record.h"
#include "wire/switches.h"

namespace longwire::shim {
namespace {

// The first version of the protocol whose workers launch behind changes.
constexpr uint32_t kKeepsOrder = 14;

// What the driver looks at in a change of a kernel.
struct Shape {
  uint32_t context = 0;
  uint64_t function = 0;
  uint32_t grid_x = 0, grid_y = 0, grid_z = 0;
  uint32_t block_x = 0, block_y = 0, block_z = 0;
  uint32_t shared_bytes = 0;
  size_t parameter_bytes = 0;
  bool operator==(const Shape&) const = default;
};

Shape ShapeOf(uint32_t context, const calls::KernelNode& kernel) {
  Shape shape{context, kernel.function};
  shape.grid_x = kernel.grid_x;
  shape.grid_y = kernel.grid_y;
  shape.grid_z = kernel.grid_z;
  shape.block_x = kernel.block_x;
  shape.block_y = kernel.block_y;
  shape.block_z = kernel.block_z;
  shape.shared_bytes = kernel.shared_bytes;
  shape.parameter_bytes = kernel.parameters.size();
  return shape;
}

// What the driver has accepted in a node.
struct Accepted {
  Shape shape;
  std::unordered_map<uint64_t, uint64_t> children;  // and ClientSession::changes() then
};

// By node.
struct Exec {
  std::unordered_map<uint64_t, Accepted> accepted;
  std::unordered_map<uint64_t, CUresult> refused;  // though the program takes it for made
};

struct AcceptedChanges {
  base::Mutex mutex{base::ranks::kAcceptedChanges};
  std::unordered_map<uint64_t, Exec> execs LONGWIRE_GUARDED_BY(mutex);
  std::atomic<bool> any_refused{false};  // ever
};

AcceptedChanges& TheChanges() {
  static NeverDestroyed<AcceptedChanges> changes;
  return *changes;
}

// True if the driver accepted such a change of the node before.
template <class Is>
bool WasAccepted(uint64_t exec, uint64_t node, Is is) {
  static const bool off = wire::IsSwitchedOff("unawaited-sets");
  if (off) return false;
  AcceptedChanges& changes = TheChanges();
  base::MutexLock lock(changes.mutex);
  auto of_exec = changes.execs.find(exec);
  if (of_exec == changes.execs.end()) return false;
  auto found = of_exec->second.accepted.find(node);
  return found != of_exec->second.accepted.end() && is(found->second);
}

template <class Note>
void NoteAccepted(uint64_t exec, uint64_t node, Note note) {
  AcceptedChanges& changes = TheChanges();
  base::MutexLock lock(changes.mutex);
  Exec& of = changes.execs[exec];
  note(of.accepted[node]);
  of.refused.erase(node);
}

void NoteRefused(uint64_t exec, uint64_t node, CUresult code) {
  AcceptedChanges& changes = TheChanges();
  {
    base::MutexLock lock(changes.mutex);
    auto found = changes.execs.find(exec);
    if (found == changes.execs.end()) return;
    found->second.accepted.erase(node);
    if (!found->second.refused.emplace(node, code).second) return;
    changes.any_refused = true;
  }
  Say("a change of a graph was refused (%s), which the program takes for made; the "
      "graph is not launched until it is changed again, or updated or instantiated as a whole",
      ErrorName(code));
}

template <class Call>
CUresult SetAhead(const Where& where, const Call& set) {
  auto answered = [exec = set.exec, node = set.node](CUresult code, std::span<const std::byte>) {
    if (code != CUDA_SUCCESS) NoteRefused(exec, node, code);
  };
  const Where ahead{where.context, nullptr, wire::kUnawaited, where.session};
  return ClientSession::Queued(where.session->CallAhead(ahead, set, answered));
}

}  // namespace

CUresult SetKernelInExec(const Where& where, const calls::lwGraphSetKernel& set) {
  const Shape shape = ShapeOf(where.context, set.kernel);
  const auto is_shape = [&](const Accepted& accepted) { return accepted.shape == shape; };
  if (WasAccepted(set.exec, set.node, is_shape)) return SetAhead(where, set);
  const CUresult code = where.session->CallAndWait(where, set, set.EncodedBytes()).code;
  if (code == CUDA_SUCCESS) {
    NoteAccepted(set.exec, set.node, [&](Accepted& accepted) { accepted.shape = shape; });
  }
  return code;
}

bool SetKnownChild(const Where& where, const calls::lwGraphSetChild& set, CUresult* result) {
  const uint64_t changes = ClientSession::changes();
  const bool known = WasAccepted(set.exec, set.node, [&](const Accepted& accepted) {
    auto found = accepted.children.find(set.child);
    return found != accepted.children.end() && found->second == changes;
  });
  if (known) *result = SetAhead(where, set);
  return known;
}

void NoteChild(const calls::lwGraphSetChild& set, uint64_t changes) {
  NoteAccepted(set.exec, set.node, [&](Accepted& accepted) {
    // Graphs that were accepted before the newest change count no more.
    std::erase_if(accepted.children, [&](const auto& child) { return child.second != changes; });
    accepted.children[set.child] = changes;
  });
}

CUresult BeforeLaunch(ClientSession& session, uint64_t exec) {
  if (session.opened().protocol < kKeepsOrder) session.AwaitAnswers();
  AcceptedChanges& changes = TheChanges();
  if (!changes.any_refused.load(std::memory_order_relaxed)) return CUDA_SUCCESS;
  base::MutexLock lock(changes.mutex);
  auto found = changes.execs.find(exec);
  if (found == changes.execs.end() || found->second.refused.empty()) return CUDA_SUCCESS;
  return found->second.refused.begin()->second;
}

void ForgetExecChanges(uint64_t exec) {
  AcceptedChanges& changes = TheChanges();
  base::MutexLock lock(changes.mutex);
  changes.execs.erase(exec);
}

}  // namespace longwire::shim
