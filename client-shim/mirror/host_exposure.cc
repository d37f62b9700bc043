#include "client-shim/mirror/host_exposure.h"

#include <atomic>
#include <cstring>
#include <map>
#include <vector>

#include "base/memory_sizes.h"
#include "base/mutex.h"
#include "base/try.h"
#include "client-shim/connect/options.h"
#include "client-shim/context/context.h"
#include "client-shim/context/properties.h"
#include "client-shim/entry/error_log.h"
#include "client-shim/memory/device_memory.h"
#include "client-shim/memory/device_ranges.h"
#include "client-shim/mirror/file_mappings.h"
#include "client-shim/mirror/host_memory.h"
#include "client-shim/mirror/live_exchange.h"
#include "client-shim/mirror/mirrors.h"
#include "client-shim/mirror/shared_blocks.h"
#include "client-shim/mirror/waiting_hint.h"
#include "client-shim/session/pinned_segment.h"
#include "client-shim/session/session.h"
#include "client-shim/stream/host_writes.h"
#include "client-shim/stream/stream.h"
#include "client-shim/support/never_destroyed.h"
#include "wire/switches.h"

namespace longwire::shim {
namespace {

// Structures with pointers are small; searching bulk data costs time.
constexpr size_t kSearchedBytes = size_t{256} << 10;

constexpr const char* kShared =
    "registered memory that other processes may write has no device address, because "
    "LONGWIRE_DISABLE has shared-registered (docs/host-memory.md)";

// Device memory for a registered range.
struct Alias {
  uint64_t base = 0;   // of the mapped chunks
  uint64_t bytes = 0;  // of them
  uint64_t start = 0;  // where the range's first byte is
  std::vector<uint64_t> chunks;
  Mirror* mirror = nullptr;
  int device = 0;
  uint32_t context_number = 0;
};

struct Aliases {
  base::Mutex mutex;  // held while a range is exposed or hidden, which waits for the server
  std::map<uint64_t, Alias> by_address LONGWIRE_GUARDED_BY(mutex);  // of the range
};

Aliases& TheAliases() {
  static NeverDestroyed<Aliases> aliases;
  return *aliases;
}

// Waits for copies that are still to write the range, or what is exposed with it: the mirror would
// not notice what they write. What host functions write is sent after they have run.
CUresult SettleHostWrites(const HostRange& range) {
  uint64_t start = base::RoundDown(range.address, base::kDeviceGranularityBytes);
  uint64_t end = base::RoundUp(range.address + range.bytes, base::kDeviceGranularityBytes);
  if (!HostCopyPending(start, end - start)) return CUDA_SUCCESS;
  return AwaitWork(UnfinishedWorkOfAll());
}

void Drop(const Alias& alias) {
  RemoveForeignRange(alias.start);
  UnmapSharedChunks(alias.device, alias.base, alias.bytes, alias.chunks);
  MemoryOf(alias.device)->GiveAddresses(alias.base, alias.bytes);
}

CUresult MakeAlias(Context* context, const HostRange& range, Alias* alias) {
  alias->device = context->device;
  alias->context_number = context->number.load();
  uint64_t within = range.address % base::kPageBytes;
  alias->bytes = base::RoundUp(within + range.bytes, base::kDeviceGranularityBytes);
  DeviceMemory* memory = MemoryOf(alias->device);
  if (!memory->TakeAddresses(alias->bytes, 0, &alias->base)) return CUDA_ERROR_OUT_OF_MEMORY;
  std::vector<int> accessors;
  CUresult result = MapSharedChunks(context, alias->base, alias->bytes, &alias->chunks, &accessors);
  if (result != CUDA_SUCCESS) {
    memory->GiveAddresses(alias->base, alias->bytes);
    return result;
  }
  alias->start = alias->base + within;
  AddForeignRange(alias->start, range.bytes, context);
  MirrorRange mirrored{range.address, alias->start, range.bytes, range.registered};
  mirrored.may_shrink = range.of_file;
  result = AddMirror(context, mirrored, MirrorStart::kZeroed, &alias->mirror);
  if (result != CUDA_SUCCESS) Drop(*alias);
  return result;
}

// Calls `expose` for every aligned word that is an address of pinned memory which the shim
// allocated and has not exposed yet, until it returns false.
template <class Expose>
void ForHiddenWords(std::span<const std::byte> bytes, Expose expose) {
  if (!AnyHiddenBlocks()) return;
  const SharedSpan span = SpanOfShared();
  for (size_t at = 0; at + sizeof(uint64_t) <= bytes.size(); at += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, sizeof(word));
    bool exposed = false;
    if (word - span.first >= span.bytes || !FindShared(word, &exposed) || exposed) continue;
    HostRange range;
    if (FindHost(word, &range) && !expose(word, range)) return;
  }
}

CUresult ExposeRegistered(Context* context, const HostRange& range, uint64_t* start) {
  Aliases& aliases = TheAliases();
  base::MutexLock lock(aliases.mutex);
  auto found = aliases.by_address.find(range.address);
  if (found == aliases.by_address.end()) {
    Alias alias;
    LONGWIRE_TRY(MakeAlias(context, range, &alias));
    found = aliases.by_address.emplace(range.address, std::move(alias)).first;
  }
  *start = found->second.start;
  return CUDA_SUCCESS;
}

// Kernels reach such memory from now on, also while they run.
void WatchExposed() {
  WatchForWaitingKernels();
  WatchRunningWork();
}

}  // namespace

CUresult ExposeHost(uint64_t address, uint64_t* device_address) {
  HostRange range;
  if (!FindHost(address, &range)) return CUDA_ERROR_INVALID_VALUE;
  if (FindMirror(address, device_address)) return CUDA_SUCCESS;
  if (IsLive(address)) {
    *device_address = address;
    return CUDA_SUCCESS;
  }
  Context* context = nullptr;
  LONGWIRE_TRY(ContextOfHost(reinterpret_cast<void*>(address), &context));
  LONGWIRE_TRY(ClientSession::over());
  LONGWIRE_TRY(TakeError(context));
  LONGWIRE_TRY(SettleHostWrites(range));
  uint64_t start = range.address;
  bool exposed = false;
  CUresult result = FindShared(address, &exposed) ? ExposeShared(address)
                                                  : ExposeRegistered(context, range, &start);
  if (result != CUDA_SUCCESS) return result;
  *device_address = start + (address - range.address);
  WatchExposed();
  return CUDA_SUCCESS;
}

CUresult ExposeToProgram(uint64_t address, uint64_t* device_address) {
  static const bool refuses = wire::IsSwitchedOff("shared-registered");
  HostRange range;
  bool is_new =
      FindHost(address, &range) && range.registered && !FindMirror(address, device_address);
  if (refuses && is_new && IsSharedMapping(range.address, range.bytes)) {
    static std::atomic<bool> said{false};
    if (!said.exchange(true)) Say("%s", kShared);
    LogError(kShared);
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  return ExposeHost(address, device_address);
}

CUresult ToDeviceAddress(uint64_t* address) {
  HostRange range;
  return FindHost(*address, &range) ? ExposeHost(*address, address) : CUDA_SUCCESS;
}

CUresult ExposeArguments(std::span<const std::byte> arguments) {
  CUresult result = CUDA_SUCCESS;
  ForHiddenWords(arguments, [&](uint64_t word, const HostRange&) {
    uint64_t device_address = 0;
    result = ExposeHost(word, &device_address);
    return result == CUDA_SUCCESS;
  });
  return result;
}

void ExposePointees(std::span<const std::byte> bytes) {
  static const bool searches = !wire::IsSwitchedOff("stored-pointers");
  if (!searches || bytes.size() > kSearchedBytes) return;
  ForHiddenWords(bytes, [](uint64_t word, const HostRange& range) {
    SettleHostWrites(range);
    if (ExposeShared(word) != CUDA_SUCCESS) return false;
    WatchExposed();
    return true;
  });
}

void HideRegistered(uint64_t address) {
  Aliases& aliases = TheAliases();
  base::MutexLock lock(aliases.mutex);
  auto found = aliases.by_address.find(address);
  if (found == aliases.by_address.end()) return;
  RemoveMirror(found->second.mirror);
  Drop(found->second);
  aliases.by_address.erase(found);
}

void ForgetExposed(uint32_t context_number) {
  Aliases& aliases = TheAliases();
  base::MutexLock lock(aliases.mutex);
  std::erase_if(aliases.by_address, [&](const auto& entry) {
    if (entry.second.context_number != context_number) return false;
    Drop(entry.second);
    return true;
  });
}

}  // namespace longwire::shim
