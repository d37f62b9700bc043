#include "client-shim/mirror/mirrors.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/memory_sizes.h"
#include "base/try.h"
#include "client-shim/mirror/mirror_table.h"
#include "client-shim/session/session.h"
#include "client-shim/support/never_destroyed.h"
#include "longwire/calls.h"

namespace longwire::shim {

std::atomic<size_t> mirror_count{0};

Mirrors& TheMirrors() {
  static NeverDestroyed<Mirrors> mirrors;
  return *mirrors;
}

bool IsThere(Mirror& mirror) {
  if (!mirror.range.may_vanish || mirror.vanished) return !mirror.vanished;
  constexpr uint64_t kPage = base::kPageBytes;
  std::array<unsigned char, 4096> in_memory;  // one for each page, of no interest
  uint64_t at = base::RoundDown(mirror.range.address, kPage);
  uint64_t end = mirror.range.address + mirror.range.bytes;
  while (at < end && !mirror.vanished) {
    uint64_t bytes = std::min(end - at, in_memory.size() * kPage);
    // Fails with ENOMEM where nothing is mapped; takes about 10 ns for a page.
    int result = mincore(reinterpret_cast<void*>(at), bytes, in_memory.data());
    mirror.vanished = result != 0 && errno == ENOMEM;
    at += bytes;
  }
  return !mirror.vanished;
}

namespace {

CUresult ChannelOf(Mirrors& mirrors, Context* context, std::shared_ptr<Channel>* found)
    LONGWIRE_REQUIRES(mirrors.mutex) {
  auto known = mirrors.channels.find(context->number.load());
  if (known != mirrors.channels.end()) {
    *found = known->second;
    return CUDA_SUCCESS;
  }
  auto made = std::make_shared<Channel>();
  LONGWIRE_TRY(NewStream(context, StreamKind::kNonBlocking, 0, 0, &made->stream));
  Retain(made->stream);
  made->stream->internal = true;
  made->event = context->session->NewId();
  calls::lwEventCreate create;
  create.event = made->event;
  create.flags = CU_EVENT_DISABLE_TIMING;
  context->session->Submit({made->stream->context_number, nullptr, 0}, create);
  mirrors.channels[made->stream->context_number] = made;
  *found = std::move(made);
  return CUDA_SUCCESS;
}

void StartOnDevice(Mirrors& mirrors, const Mirror& mirror, MirrorStart start)
    LONGWIRE_REQUIRES(mirrors.mutex) {
  calls::lwMirrorAdd add;
  add.mirror = mirror.id;
  add.address = mirror.range.device_address;
  add.bytes = mirror.reserved;
  mirror.channel->stream->session->Submit(mirror.channel->where(), add);
  if (start == MirrorStart::kFromDevice) {
    mirrors.handed.store(true);
    return;
  }
  calls::lwMemset zero;
  zero.address = mirror.range.device_address;
  zero.pitch = zero.width = mirror.reserved;
  zero.element_bytes = 1;
  zero.value = 0;
  zero.rows = 1;
  mirror.channel->stream->session->Submit(mirror.channel->where(), zero);
  RecordSent(mirrors, *mirror.channel);
}

}  // namespace

CUresult AddMirror(Context* context, const MirrorRange& range, MirrorStart start, Mirror** added) {
  Mirrors& mirrors = TheMirrors();
  {
    base::MutexLock lock(mirrors.mutex);
    auto mirror = std::make_unique<Mirror>();
    LONGWIRE_TRY(ChannelOf(mirrors, context, &mirror->channel));
    KeepPromise(mirrors);
    void* shadow = mmap(nullptr, range.bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (shadow == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
    mirror->id = context->session->NewId();
    mirror->range = range;
    mirror->reserved = range.bytes;
    if (range.used != 0) mirror->range.bytes = std::min(range.used, range.bytes);
    mirror->shadow = static_cast<std::byte*>(shadow);
    StartOnDevice(mirrors, *mirror, start);
    *added = mirror.get();
    mirrors.by_address[range.address] = std::move(mirror);
    mirror_count.fetch_add(1);
  }
  if (start == MirrorStart::kZeroed) return CUDA_SUCCESS;
  CUresult result = ReturnDeviceWrites();
  if (result != CUDA_SUCCESS) RemoveMirror(*added);
  return result;
}

void RemoveMirror(Mirror* mirror) {
  Mirrors& mirrors = TheMirrors();
  std::vector<StreamPoint> points;
  {
    base::MutexLock lock(mirrors.mutex);
    AwaitPull(mirrors, lock);  // which may still know it
    KeepPromise(mirrors);
    calls::lwMirrorRemove remove;
    remove.mirror = mirror->id;
    mirror->channel->stream->session->Submit(mirror->channel->where(), remove);
    Retain(mirror->channel->stream);
    points.push_back({mirror->channel->stream, mirror->channel->stream->last.load()});
    munmap(mirror->shadow, mirror->reserved);
    mirrors.by_address.erase(mirror->range.address);
    mirror_count.fetch_sub(1);
  }
  // Fails only if the session has ended: then nothing is exchanged either.
  static_cast<void>(AwaitWork(points));
}

void ForgetMirrors(uint32_t context_number) {
  Mirrors& mirrors = TheMirrors();
  base::MutexLock lock(mirrors.mutex);
  auto channel = mirrors.channels.find(context_number);
  if (channel == mirrors.channels.end()) return;
  channel->second->ended.store(true);
  AwaitPull(mirrors, lock);
  channel = mirrors.channels.find(context_number);
  if (channel == mirrors.channels.end()) return;
  KeepPromise(mirrors);
  std::erase_if(mirrors.by_address, [&](const auto& entry) {
    const Mirror& mirror = *entry.second;
    if (mirror.channel != channel->second) return false;
    munmap(mirror.shadow, mirror.reserved);
    mirror_count.fetch_sub(1);
    return true;
  });
  Release(channel->second->stream);
  mirrors.channels.erase(channel);
}

void GrowMirror(uint64_t address, uint64_t bytes) {
  Mirrors& mirrors = TheMirrors();
  base::MutexLock lock(mirrors.mutex);
  auto found = mirrors.by_address.find(address);
  if (found == mirrors.by_address.end()) return;
  Mirror& mirror = *found->second;
  mirror.range.bytes = std::max(mirror.range.bytes, std::min(bytes, mirror.reserved));
}

bool IsMirrored(uint64_t device_address) {
  if (!AnyMirrors()) return false;
  Mirrors& mirrors = TheMirrors();
  base::MutexLock lock(mirrors.mutex);
  return std::any_of(mirrors.by_address.begin(), mirrors.by_address.end(), [&](const auto& entry) {
    const Mirror& mirror = *entry.second;
    return device_address - mirror.range.device_address < mirror.reserved;
  });
}

bool FindMirror(uint64_t address, uint64_t* device_address) {
  if (!AnyMirrors()) return false;
  Mirrors& mirrors = TheMirrors();
  base::MutexLock lock(mirrors.mutex);
  auto after = mirrors.by_address.upper_bound(address);
  if (after == mirrors.by_address.begin()) return false;
  const MirrorRange& range = std::prev(after)->second->range;
  if (address - range.address >= range.bytes) return false;
  *device_address = range.device_address + (address - range.address);
  return true;
}

}  // namespace longwire::shim
