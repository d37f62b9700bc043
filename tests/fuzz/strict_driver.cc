#include "tests/fuzz/strict_driver.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <vector>

#include "base/mutex.h"
#include "longwire/fake_driver.h"
#include "server/worker/testing/fake_driver.h"

namespace longwire::fuzz {
namespace {

using Address = std::uintptr_t;

class Handles {
 public:
  Address Make() {
    base::MutexLock lock(mutex_);
    next_ += 16;
    known_.insert(next_);
    return next_;
  }
  // Ends the process for a handle that is not known. Null is for the driver to refuse.
  void Expect(Address handle, const char* function) {
    base::MutexLock lock(mutex_);
    if (handle == 0 || known_.contains(handle)) return;
    std::fprintf(stderr, "%s was given the handle %#zx, which nobody has\n", function, handle);
    std::abort();
  }
  void End(Address handle) {
    base::MutexLock lock(mutex_);
    known_.erase(handle);
  }
  void Clear() {
    base::MutexLock lock(mutex_);
    known_.clear();
  }

 private:
  base::Mutex mutex_;
  std::set<Address> known_ LONGWIRE_GUARDED_BY(mutex_);
  Address next_ LONGWIRE_GUARDED_BY(mutex_) = 0x7000'0000'0000;
};

Handles& All() {
  static auto* handles = new Handles();
  return *handles;
}

template <class Handle>
CUresult Made(Handle* handle) {
  *handle = (Handle)All().Make();  // a pointer, or a number
  return CUDA_SUCCESS;
}

template <class Handle>
bool IsGood(Handle handle, const char* function) {
  All().Expect((Address)handle, function);
  return (Address)handle != 0;
}

template <class Handle>
CUresult Ended(Handle handle, const char* function) {
  if (!IsGood(handle, function)) return CUDA_ERROR_INVALID_HANDLE;
  All().End((Address)handle);
  return CUDA_SUCCESS;
}

template <class Handle>
void AllGood(const Handle* handles, size_t count, const char* function) {
  for (size_t i = 0; handles != nullptr && i < count; ++i) IsGood(handles[i], function);
}

#define LW_MAKES(name) table.name = [](auto* made, auto...) { return Made(made); }
#define LW_ENDS(name) table.name = [](auto handle) { return Ended(handle, #name); }
// The handle comes first, and what it is asked for stays as it is.
#define LW_LOOKS(name)                                                       \
  table.name = [](auto handle, auto...) {                                    \
    return IsGood(handle, #name) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE; \
  }
// The handle comes second, behind what is to be filled in.
#define LW_TELLS(name)                                                       \
  table.name = [](auto*, auto handle, auto...) {                             \
    return IsGood(handle, #name) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE; \
  }
// A node of a graph, behind others.
#define LW_ADDS(name)                                                                        \
  table.name = [](CUgraphNode* node, CUgraph graph, const CUgraphNode* behind, size_t count, \
                  auto...) {                                                                 \
    AllGood(behind, count, #name);                                                           \
    return IsGood(graph, #name) ? Made(node) : CUDA_ERROR_INVALID_VALUE;                     \
  }

void FillArrays(DriverTable& table) {
  LW_MAKES(cuArrayCreate_v2);
  LW_MAKES(cuArray3DCreate_v2);
  LW_MAKES(cuMipmappedArrayCreate);
  LW_ENDS(cuArrayDestroy);
  LW_ENDS(cuMipmappedArrayDestroy);
  LW_TELLS(cuArrayGetDescriptor_v2);
  LW_TELLS(cuArray3DGetDescriptor_v2);
  LW_TELLS(cuArrayGetMemoryRequirements);
  LW_TELLS(cuMipmappedArrayGetMemoryRequirements);
  LW_TELLS(cuArrayGetSparseProperties);
  LW_TELLS(cuMipmappedArrayGetSparseProperties);
  LW_TELLS(cuArrayGetPlane);
  LW_TELLS(cuMipmappedArrayGetLevel);
  LW_MAKES(cuTexObjectCreate);
  LW_MAKES(cuSurfObjectCreate);
  LW_ENDS(cuTexObjectDestroy);
  LW_ENDS(cuSurfObjectDestroy);
}

void FillGraphs(DriverTable& table) {
  LW_MAKES(cuGraphCreate);
  LW_ENDS(cuGraphDestroy);
  LW_ENDS(cuGraphExecDestroy);
  LW_ENDS(cuGraphDestroyNode);
  LW_ADDS(cuGraphAddKernelNode_v2);
  LW_ADDS(cuGraphAddMemcpyNode);
  LW_ADDS(cuGraphAddMemsetNode);
  LW_ADDS(cuGraphAddHostNode);
  LW_ADDS(cuGraphAddChildGraphNode);
  LW_ADDS(cuGraphAddEmptyNode);
  LW_ADDS(cuGraphAddEventRecordNode);
  LW_ADDS(cuGraphAddEventWaitNode);
  LW_ADDS(cuGraphAddMemAllocNode);
  LW_ADDS(cuGraphAddMemFreeNode);
  LW_ADDS(cuGraphAddBatchMemOpNode);
  LW_TELLS(cuGraphNodeGetType);
  LW_LOOKS(cuGraphGetNodes);
  LW_LOOKS(cuGraphGetRootNodes);
  LW_LOOKS(cuGraphGetEdges_v2);
  LW_LOOKS(cuGraphNodeGetDependencies_v2);
  LW_LOOKS(cuGraphNodeGetDependentNodes_v2);
  LW_LOOKS(cuGraphKernelNodeGetParams_v2);
  LW_LOOKS(cuGraphKernelNodeSetParams_v2);
  LW_LOOKS(cuGraphMemcpyNodeGetParams);
  LW_LOOKS(cuGraphMemcpyNodeSetParams);
  LW_LOOKS(cuGraphMemsetNodeGetParams);
  LW_LOOKS(cuGraphMemsetNodeSetParams);
  LW_LOOKS(cuGraphMemAllocNodeGetParams);
  LW_LOOKS(cuGraphMemFreeNodeGetParams);
  LW_LOOKS(cuGraphKernelNodeGetAttribute);
  LW_LOOKS(cuGraphKernelNodeSetAttribute);
  LW_LOOKS(cuGraphChildGraphNodeGetGraph);
  LW_LOOKS(cuGraphExecGetFlags);
  LW_TELLS(cuGraphClone);
  table.cuGraphAddDependencies_v2 = [](CUgraph graph, const CUgraphNode* from,
                                       const CUgraphNode* to, const CUgraphEdgeData*,
                                       size_t count) {
    AllGood(from, count, "cuGraphAddDependencies");
    AllGood(to, count, "cuGraphAddDependencies");
    IsGood(graph, "cuGraphAddDependencies");
    return CUDA_SUCCESS;
  };
  table.cuGraphInstantiateWithFlags = [](CUgraphExec* exec, CUgraph graph, unsigned long long) {
    return IsGood(graph, "cuGraphInstantiate") ? Made(exec) : CUDA_ERROR_INVALID_VALUE;
  };
  table.cuGraphLaunch = [](CUgraphExec exec, CUstream) {
    return IsGood(exec, "cuGraphLaunch") ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  };
  table.cuGraphUpload = [](CUgraphExec exec, CUstream) {
    return IsGood(exec, "cuGraphUpload") ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  };
}

// Pinned memory of the worker's, into which the progress of streams is written. Nothing is written
// to other addresses.
class Pinned {
 public:
  static Pinned& Get() {
    static auto* pinned = new Pinned();
    return *pinned;
  }
  CUresult Allocate(void** memory, size_t bytes) {
    *memory = std::calloc(1, bytes);
    base::MutexLock lock(mutex_);
    ranges_[reinterpret_cast<Address>(*memory)] = bytes;
    return CUDA_SUCCESS;
  }
  CUresult Free(void* memory) {
    base::MutexLock lock(mutex_);
    if (ranges_.erase(reinterpret_cast<Address>(memory)) != 0) std::free(memory);
    return CUDA_SUCCESS;
  }
  bool Has(Address address, size_t bytes) {
    base::MutexLock lock(mutex_);
    auto range = ranges_.upper_bound(address);
    if (range == ranges_.begin()) return false;
    --range;
    uint64_t offset = address - range->first;
    return offset <= range->second && bytes <= range->second - offset;
  }

 private:
  base::Mutex mutex_;
  std::map<Address, size_t> ranges_ LONGWIRE_GUARDED_BY(mutex_);
};

void FillPinned(DriverTable& table) {
  table.cuMemHostAlloc = [](void** memory, size_t bytes, unsigned) {
    return Pinned::Get().Allocate(memory, bytes);
  };
  table.cuMemFreeHost = [](void* memory) { return Pinned::Get().Free(memory); };
  static const auto write = table.cuStreamWriteValue64_v2;
  table.cuStreamWriteValue64_v2 = [](CUstream stream, CUdeviceptr address, cuuint64_t value,
                                     unsigned flags) {
    bool ours = address % sizeof(value) == 0 && Pinned::Get().Has(address, sizeof(value));
    return ours ? write(stream, address, value, flags) : CUDA_SUCCESS;
  };
}

// What the fake driver of tests follows is left to the one that only notes the call.
void LeaveOut(DriverTable& table) {
  const DriverTable none;
  table.cuMemcpyHtoDAsync_v2 = none.cuMemcpyHtoDAsync_v2;
  table.cuMemcpyDtoHAsync_v2 = none.cuMemcpyDtoHAsync_v2;
  table.cuGraphExecKernelNodeSetParams_v2 = none.cuGraphExecKernelNodeSetParams_v2;
}

}  // namespace

DriverTable StrictDriver() {
  DriverTable table = worker::testing::FakeDriver().table();
  LeaveOut(table);
  FillArrays(table);
  FillGraphs(table);
  FillPinned(table);
  // Whatever is not there only notes the call. Entries are pointers to functions, all of one size.
  static_assert(sizeof(table) % sizeof(void*) == 0);
  const DriverTable none, others = longwire::FakeDriver::Get().table();
  auto entries = [](const DriverTable& of) {
    std::vector<void*> all(sizeof(of) / sizeof(void*));
    std::memcpy(all.data(), &of, sizeof(of));
    return all;
  };
  std::vector<void*> mine = entries(table), missing = entries(none), theirs = entries(others);
  for (size_t i = 0; i < mine.size(); ++i) mine[i] = mine[i] == missing[i] ? theirs[i] : mine[i];
  std::memcpy(static_cast<void*>(&table), mine.data(), sizeof(table));
  return table;
}

void ForgetHandles() {
  All().Clear();
  longwire::FakeDriver::Get().Clear();
}

}  // namespace longwire::fuzz
