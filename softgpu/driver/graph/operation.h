// The operations that streams run and graphs hold; and events, which some of them name.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <variant>
#include <vector>

#include "softgpu/driver/graph/condition.h"
#include "softgpu/driver/state/driver.h"
#include "softgpu/engine/engine.h"

namespace softgpu {

struct Capture;
struct GraphMemory;

// One piece of submitted work: finished or not.
class Completion {
 public:
  bool done() const { return done_.load(std::memory_order_acquire) != 0; }
  void Wait() const {
    base::AssertNoRankedLockHeld();
    done_.wait(0, std::memory_order_acquire);
  }
  void Finish() {
    finished_at_ = std::chrono::steady_clock::now();
    done_.store(1, std::memory_order_release);
    done_.notify_all();
  }
  // Precondition: done().
  std::chrono::steady_clock::time_point finished_at() const { return finished_at_; }

 private:
  std::atomic<int> done_{0};
  std::chrono::steady_clock::time_point finished_at_;
};
using CompletionRef = std::shared_ptr<Completion>;

struct Event {
  unsigned flags = 0;
  Context* context = nullptr;
  // Null until recorded. If the last record was captured: in which capture, if that goes on, and
  // the nodes that the event stands for.
  CompletionRef record LONGWIRE_GUARDED_BY(Driver::mutex);
  bool captured LONGWIRE_GUARDED_BY(Driver::mutex) = false;
  std::weak_ptr<Capture> capture LONGWIRE_GUARDED_BY(Driver::mutex);
  std::vector<GraphNode*> capture_nodes LONGWIRE_GUARDED_BY(Driver::mutex);
};

// The operations. Copies, fills and host functions keep the driver's own parameter structs, which
// graphs hand out again.
struct EmptyOperation {};
struct KernelOperation {
  std::shared_ptr<Function> function;  // keeps its module loaded
  LaunchConfig config;
  std::vector<std::byte> parameters;
};
// Which device's access each side of a copy needs: the stream's own, or what a peer copy names.
struct CopyDevices {
  int source = 0;
  int target = 0;
};
struct CopyOperation {
  CUDA_MEMCPY3D copy = {};
  CopyDevices devices;
  std::shared_ptr<std::vector<std::byte>> staged;  // bytes of a pageable source, taken at the call
};
struct FillOperation {
  CUDA_MEMSET_NODE_PARAMS fill = {};
  int device = 0;
};
struct HostOperation {
  CUDA_HOST_NODE_PARAMS host = {};
};
struct EventRecordOperation {
  std::shared_ptr<Event> event;
};
struct EventWaitOperation {
  std::shared_ptr<Event> event;
};
struct BatchMemoryOperation {
  std::vector<CUstreamBatchMemOpParams> operations;
  int device = 0;
};
struct ChildGraphOperation {
  std::shared_ptr<Graph> graph;
};
struct MemoryAllocOperation {
  std::shared_ptr<GraphMemory> memory;
};
struct MemoryFreeOperation {
  CUdeviceptr address = 0;
};
using Operation = std::variant<EmptyOperation, KernelOperation, CopyOperation, FillOperation,
                               HostOperation, EventRecordOperation, EventWaitOperation,
                               BatchMemoryOperation, ChildGraphOperation, MemoryAllocOperation,
                               MemoryFreeOperation, ConditionalOperation>;

}  // namespace softgpu
