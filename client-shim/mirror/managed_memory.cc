#include "client-shim/mirror/managed_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <vector>

#include "base/lock_ranks.h"
#include "base/memory_sizes.h"
#include "base/mutex.h"
#include "base/try.h"
#include "client-shim/connect/options.h"
#include "client-shim/mirror/live_exchange.h"
#include "client-shim/mirror/mirrors.h"
#include "client-shim/mirror/shared_blocks.h"
#include "client-shim/session/session.h"
#include "client-shim/support/holding.h"
#include "client-shim/support/never_destroyed.h"

namespace longwire::shim {
namespace {

constexpr uint64_t kFirstId = uint64_t{1} << 42;  // other kinds of memory have smaller ids
constexpr uint64_t kPage = base::kPageBytes;

// Where the server may put managed variables, and how large they can be: their pages are mapped one
// by one.
constexpr uint64_t kLowest = uint64_t{1} << 20;
constexpr uint64_t kLargestVariable = uint64_t{4} << 30;
constexpr const char* kElsewhere = "put a managed variable where none can be";

struct Range {
  ManagedRange shown;  // what FindManaged returns
  uint32_t context_number = 0;
  Mirror* mirror = nullptr;  // of a variable; null while no context has it
  bool of_library = false;   // a variable that outlives contexts
  MemoryHints hints;
};

struct ManagedRanges {
  std::atomic<size_t> count{0};
  // Held while variables come, go or get a mirror, which waits for the server: they change under it
  // alone. Look-ups do without.
  base::Mutex variables_mutex LONGWIRE_ACQUIRED_BEFORE(mutex);
  // Mapped for variables: how many lie there.
  std::map<uint64_t, int> pages LONGWIRE_GUARDED_BY(variables_mutex);
  base::Mutex mutex{base::ranks::kManagedMemory};
  std::map<uint64_t, Range> by_address LONGWIRE_GUARDED_BY(mutex);
  uint64_t next_id LONGWIRE_GUARDED_BY(mutex) = kFirstId;
};

ManagedRanges& TheRanges() {
  static NeverDestroyed<ManagedRanges> ranges;
  return *ranges;
}

using Entry = std::map<uint64_t, Range>::iterator;

Entry Holding(ManagedRanges& ranges, uint64_t address) LONGWIRE_REQUIRES(ranges.mutex) {
  return shim::Holding(ranges.by_address, address,
                       [](const Range& range) { return range.shown.bytes; });
}

Range& Add(ManagedRanges& ranges, const ManagedRange& added) LONGWIRE_REQUIRES(ranges.mutex) {
  Range& range = ranges.by_address[added.address];
  range.shown = added;
  range.shown.id = ranges.next_id++;
  range.context_number = added.context->number.load();
  ranges.count.store(ranges.by_address.size());
  return range;
}

void Erase(ManagedRanges& ranges, Entry entry) LONGWIRE_REQUIRES(ranges.mutex) {
  ranges.by_address.erase(entry);
  ranges.count.store(ranges.by_address.size());
}

void UnmapPages(ManagedRanges& ranges, uint64_t address, uint64_t bytes)
    LONGWIRE_REQUIRES(ranges.variables_mutex) {
  for (uint64_t page = base::RoundDown(address, kPage); page < address + bytes; page += kPage) {
    auto found = ranges.pages.find(page);
    if (found == ranges.pages.end() || --found->second > 0) continue;
    munmap(reinterpret_cast<void*>(page), kPage);
    ranges.pages.erase(found);
  }
}

// Maps the pages of a variable; several variables may share one. False where the program has other
// memory.
bool MapPages(ManagedRanges& ranges, uint64_t address, uint64_t bytes)
    LONGWIRE_REQUIRES(ranges.variables_mutex) {
  for (uint64_t page = base::RoundDown(address, kPage); page < address + bytes; page += kPage) {
    if (ranges.pages.count(page) == 0) {
      auto* at = reinterpret_cast<void*>(page);
      void* got = mmap(at, kPage, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
      if (got != at) {
        if (got != MAP_FAILED) munmap(got, kPage);
        if (page > address) UnmapPages(ranges, address, page - address);
        return false;
      }
    }
    ++ranges.pages[page];
  }
  return true;
}

}  // namespace

CUresult AllocateManaged(uint64_t bytes, unsigned flags, uint64_t* address) {
  if (bytes == 0 || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Context* context = nullptr;
  CUresult result = RequireHealthyContext(&context);
  return result == CUDA_SUCCESS ? AllocateManagedIn(context, bytes, address) : result;
}

CUresult AllocateManagedIn(Context* context, uint64_t bytes, uint64_t* address) {
  LONGWIRE_TRY(RefuseIfSeveral("managed memory"));
  LONGWIRE_TRY(TakeShared(context, bytes, SharedUse::kManaged, address));
  WatchRunningWork();
  ManagedRanges& ranges = TheRanges();
  base::MutexLock lock(ranges.mutex);
  Add(ranges, {*address, bytes, 0, context, false});
  return CUDA_SUCCESS;
}

CUresult FreeManaged(uint64_t address) {
  ManagedRanges& ranges = TheRanges();
  {
    base::MutexLock lock(ranges.mutex);
    auto found = ranges.by_address.find(address);
    if (found == ranges.by_address.end() || found->second.shown.variable) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    Erase(ranges, found);
  }
  CUresult result = AwaitWork(UnfinishedWorkOfAll());
  FlushAllText();
  if (result == CUDA_SUCCESS) result = ReturnDeviceWrites();
  GiveShared(address);
  return result;
}

void FreeIdleManaged(uint64_t address, uint64_t id) {
  ManagedRanges& ranges = TheRanges();
  {
    base::MutexLock lock(ranges.mutex);
    auto found = ranges.by_address.find(address);
    if (found == ranges.by_address.end() || found->second.shown.id != id) return;
    Erase(ranges, found);
  }
  FlushAllText();
  // Other allocations share the block. It fails only if the session has ended.
  (void)ReturnDeviceWrites();
  GiveShared(address);
}

bool FindManaged(uint64_t address, ManagedRange* range) {
  ManagedRanges& ranges = TheRanges();
  if (ranges.count.load(std::memory_order_acquire) == 0) return false;
  base::MutexLock lock(ranges.mutex);
  Entry found = Holding(ranges, address);
  if (found == ranges.by_address.end()) return false;
  *range = found->second.shown;
  return true;
}

CUresult AddManagedVariable(Context* context, uint64_t address, uint64_t bytes, bool of_library) {
  ManagedRanges& ranges = TheRanges();
  base::MutexLock changing(ranges.variables_mutex);
  {
    base::MutexLock lock(ranges.mutex);
    auto known = ranges.by_address.find(address);
    if (known != ranges.by_address.end()) {
      bool same = known->second.shown.variable && known->second.shown.bytes == bytes;
      return same ? CUDA_SUCCESS : context->session->Distrust(kElsewhere);
    }
  }
  if (address < kLowest || bytes == 0 || bytes > kLargestVariable ||
      address > base::kMaxMemoryBytes * 2 - bytes) {
    return context->session->Distrust(kElsewhere);
  }
  if (!MapPages(ranges, address, bytes)) {
    Say("a managed variable lies at %#llx on the server, where this program has something else; "
        "starting the program again may help",
        static_cast<unsigned long long>(address));
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  Mirror* mirror = nullptr;
  CUresult result =
      AddMirror(context, {address, address, bytes, false, true}, MirrorStart::kFromDevice, &mirror);
  if (result != CUDA_SUCCESS) {
    UnmapPages(ranges, address, bytes);
    return result;
  }
  WatchRunningWork();
  base::MutexLock lock(ranges.mutex);
  Range& added = Add(ranges, {address, bytes, 0, context, true});
  added.mirror = mirror;
  added.of_library = of_library;
  return CUDA_SUCCESS;
}

void RemoveManagedVariable(uint64_t address) {
  ManagedRanges& ranges = TheRanges();
  base::MutexLock changing(ranges.variables_mutex);
  base::MutexLock lock(ranges.mutex);
  auto found = ranges.by_address.find(address);
  if (found == ranges.by_address.end() || !found->second.shown.variable) return;
  Mirror* mirror = found->second.mirror;
  const uint64_t bytes = found->second.shown.bytes;
  lock.Unlock();
  if (mirror != nullptr) RemoveMirror(mirror);
  lock.Lock();
  Erase(ranges, found);
  lock.Unlock();
  UnmapPages(ranges, address, bytes);
}

bool IsManagedRange(uint64_t address, uint64_t bytes) {
  ManagedRanges& ranges = TheRanges();
  base::MutexLock lock(ranges.mutex);
  auto found = ranges.by_address.find(address);
  return found != ranges.by_address.end() && (bytes == 0 || bytes == found->second.shown.bytes);
}

CUresult WithHints(uint64_t address, uint64_t bytes, FunctionRef<void(MemoryHints&)> use) {
  ManagedRanges& ranges = TheRanges();
  base::MutexLock lock(ranges.mutex);
  Entry found = Holding(ranges, address);
  if (bytes == 0 || found == ranges.by_address.end()) return CUDA_ERROR_INVALID_VALUE;
  // All of the last page counts, as natively.
  uint64_t end = base::RoundUp(found->first + found->second.shown.bytes, kPage);
  if (bytes > end - address) return CUDA_ERROR_INVALID_VALUE;
  use(found->second.hints);
  return CUDA_SUCCESS;
}

CUresult KeepManagedVariables(Context* context) {
  ManagedRanges& ranges = TheRanges();
  {
    base::MutexLock lock(ranges.mutex);
    bool any = std::any_of(ranges.by_address.begin(), ranges.by_address.end(), [&](auto& entry) {
      return entry.second.of_library && entry.second.context_number == context->number.load();
    });
    if (!any || context->sticky.load() != 0) return CUDA_SUCCESS;
  }
  CUresult result = AwaitWork(UnfinishedWork(context));
  return result == CUDA_SUCCESS ? ReturnDeviceWrites() : result;
}

namespace {

// The variables that no context has.
std::vector<ManagedRange> VariablesWithoutContext(ManagedRanges& ranges)
    LONGWIRE_EXCLUDES(ranges.mutex) {
  base::MutexLock lock(ranges.mutex);
  std::vector<ManagedRange> found;
  for (auto& [address, range] : ranges.by_address) {
    if (range.of_library && range.mirror == nullptr) found.push_back(range.shown);
  }
  return found;
}

}  // namespace

CUresult GiveManagedVariables(Context* context) {
  ManagedRanges& ranges = TheRanges();
  if (ranges.count.load(std::memory_order_acquire) == 0) return CUDA_SUCCESS;
  base::MutexLock changing(ranges.variables_mutex);
  for (const ManagedRange& variable : VariablesWithoutContext(ranges)) {
    // What the program has differs from the zeros on the device, so the next work sends it.
    const MirrorRange mirrored{variable.address, variable.address, variable.bytes, false, true};
    Mirror* mirror = nullptr;
    CUresult result = AddMirror(context, mirrored, MirrorStart::kZeroed, &mirror);
    if (result != CUDA_SUCCESS) {
      Say("a context does not get the program's managed variables: error %d", result);
      return result;
    }
    base::MutexLock lock(ranges.mutex);
    Range& range = ranges.by_address.at(variable.address);
    range.mirror = mirror;
    range.shown.context = context;
    range.context_number = context->number.load();
  }
  return CUDA_SUCCESS;
}

void ForgetManaged(uint32_t context_number) {
  ManagedRanges& ranges = TheRanges();
  base::MutexLock changing(ranges.variables_mutex);
  base::MutexLock lock(ranges.mutex);
  for (Entry entry = ranges.by_address.begin(); entry != ranges.by_address.end();) {
    Entry next = std::next(entry);
    Range& range = entry->second;
    if (range.context_number == context_number && range.of_library) {
      range.mirror = nullptr;  // which went with the context
      range.context_number = 0;
    } else if (range.context_number == context_number) {
      if (range.shown.variable) UnmapPages(ranges, entry->first, range.shown.bytes);
      Erase(ranges, entry);
    }
    entry = next;
  }
}

}  // namespace longwire::shim
