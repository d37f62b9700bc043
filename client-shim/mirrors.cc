#include "client-shim/mirrors.h"

#include <sys/mman.h>

#include <algorithm>

#include "client-shim/mirror_table.h"
#include "client-shim/never_destroyed.h"
#include "client-shim/options.h"
#include "client-shim/process.h"
#include "longwire/calls.h"
#include "wire/page_delta.h"

namespace longwire::shim {

std::atomic<size_t> mirror_count{0};

Mirrors& TheMirrors() {
  static NeverDestroyed<Mirrors> mirrors;
  return *mirrors;
}

namespace {

bool TakesTurns() {
  static const bool turns = !ProcessOptions().Disabled("managed-turns");
  return turns;
}

// The lock is held, as in all that follows up to AddMirror.
CUresult ChannelOf(Mirrors& mirrors, Context* context, std::shared_ptr<Channel>* found) {
  std::shared_ptr<Channel>& channel = mirrors.channels[context->number.load()];
  if (channel == nullptr) {
    auto made = std::make_shared<Channel>();
    CUresult result = NewStream(context, StreamKind::kNonBlocking, 0, 0, &made->stream);
    if (result != CUDA_SUCCESS) return result;
    Retain(made->stream);
    made->stream->internal = true;
    made->event = TheSession().NewId();
    calls::lwEventCreate create;
    create.event = made->event;
    create.flags = CU_EVENT_DISABLE_TIMING;
    TheSession().Submit({made->stream->context_number, nullptr, 0}, create);
    channel = std::move(made);
  }
  *found = channel;
  return CUDA_SUCCESS;
}

// Something was sent: later work waits for this place.
void Record(Mirrors& mirrors, Channel& channel) {
  calls::lwEventRecord record;
  record.event = channel.event;
  record.version = ++channel.version;
  record.flags = 0;
  channel.position = TheSession().Submit(channel.where(), record);
  channel.sent = ++mirrors.sent;
}

// True if something had changed.
bool Push(Mirrors& mirrors, Mirror& mirror) {
  // Unchanged bytes may go along only while the device has nothing to change them.
  bool quiet = !mirrors.handed.load() && mirrors.begun == 0;
  wire::PageForm form = quiet ? wire::PageForm::kWhole : wire::PageForm::kMasked;
  std::span<const std::byte> memory = mirror.memory();
  std::vector<std::byte> delta;
  bool any = false;
  for (uint64_t at = 0; at < memory.size();) {
    delta.clear();
    at += wire::AppendDelta(memory.subspan(at), mirror.shadow + at, at, form,
                            wire::kDeltaBytes - wire::kMaxDeltaOfPage, &delta);
    if (delta.empty()) continue;
    if (WaitForRoom(mirror.channel->stream) != CUDA_SUCCESS) break;  // the context has failed
    calls::lwMirrorPush push;
    push.mirror = mirror.id;
    push.delta = delta;
    TheSession().Submit(mirror.channel->where(), push, 64 + delta.size());
    TheSession().counts().uploaded.fetch_add(delta.size(), std::memory_order_relaxed);
    any = true;
  }
  mirror.host_turn = false;
  return any;
}

void PushAll(Mirrors& mirrors) {
  std::vector<Channel*> touched;
  for (auto& [address, mirror] : mirrors.by_address) {
    bool may_differ = mirror->host_turn || mirror->range.any_time || !TakesTurns();
    if (!may_differ || !Push(mirrors, *mirror)) continue;
    if (std::find(touched.begin(), touched.end(), mirror->channel.get()) == touched.end()) {
      touched.push_back(mirror->channel.get());
    }
  }
  for (Channel* channel : touched) Record(mirrors, *channel);
}

// Lets the stream's later work wait for what was sent.
void Order(Mirrors& mirrors, Stream* stream) {
  uint64_t seen = stream->mirrors_seen.exchange(mirrors.sent);
  for (auto& [number, channel] : mirrors.channels) {
    if (channel->sent <= seen || channel->stream->finished.load() >= channel->position) continue;
    calls::lwStreamWaitEvent wait;
    wait.event = channel->event;
    wait.version = channel->version;
    wait.flags = 0;
    TheSession().Submit({stream->context_number, stream, 0}, wait);
  }
}

void StartOnDevice(Mirrors& mirrors, const Mirror& mirror, MirrorStart start) {
  calls::lwMirrorAdd add;
  add.mirror = mirror.id;
  add.address = mirror.range.device_address;
  add.bytes = mirror.reserved;
  TheSession().Submit(mirror.channel->where(), add);
  if (start == MirrorStart::kFromDevice) {
    mirrors.handed.store(true);
    return;
  }
  calls::lwMemset clear;
  clear.address = mirror.range.device_address;
  clear.pitch = clear.width = mirror.reserved;
  clear.element_bytes = 1;
  clear.value = 0;
  clear.rows = 1;
  TheSession().Submit(mirror.channel->where(), clear);
  Record(mirrors, *mirror.channel);
}

}  // namespace

CUresult AddMirror(Context* context, const MirrorRange& range, MirrorStart start, Mirror** added) {
  Mirrors& mirrors = TheMirrors();
  {
    std::lock_guard<std::mutex> lock(mirrors.mutex);
    auto mirror = std::make_unique<Mirror>();
    CUresult result = ChannelOf(mirrors, context, &mirror->channel);
    if (result != CUDA_SUCCESS) return result;
    void* shadow = mmap(nullptr, range.bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (shadow == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
    mirror->id = TheSession().NewId();
    mirror->range = range;
    mirror->reserved = range.bytes;
    mirror->shadow = static_cast<std::byte*>(shadow);
    StartOnDevice(mirrors, *mirror, start);
    *added = mirror.get();
    mirrors.by_address[range.address] = std::move(mirror);
    mirror_count.fetch_add(1);
  }
  if (start == MirrorStart::kFromDevice) ReturnDeviceWrites();
  return CUDA_SUCCESS;
}

void RemoveMirror(Mirror* mirror) {
  Mirrors& mirrors = TheMirrors();
  std::vector<StreamPoint> points;
  {
    // No pull is going on that still knows it.
    std::lock_guard<std::mutex> pull(mirrors.pull_mutex);
    std::lock_guard<std::mutex> lock(mirrors.mutex);
    calls::lwMirrorRemove remove;
    remove.mirror = mirror->id;
    TheSession().Submit(mirror->channel->where(), remove);
    Retain(mirror->channel->stream);
    points.push_back({mirror->channel->stream, mirror->channel->stream->last.load()});
    munmap(mirror->shadow, mirror->reserved);
    mirrors.by_address.erase(mirror->range.address);
    mirror_count.fetch_sub(1);
  }
  AwaitWork(points);
}

void ForgetMirrors(uint32_t context_number) {
  Mirrors& mirrors = TheMirrors();
  std::lock_guard<std::mutex> pull(mirrors.pull_mutex);
  std::lock_guard<std::mutex> lock(mirrors.mutex);
  auto channel = mirrors.channels.find(context_number);
  if (channel == mirrors.channels.end()) return;
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

void SetMirroredBytes(Mirror* mirror, uint64_t bytes) {
  std::lock_guard<std::mutex> lock(TheMirrors().mutex);
  mirror->range.bytes = std::min(bytes, mirror->reserved);
}

void LetHostWriteAnyTime(Mirror* mirror) {
  std::lock_guard<std::mutex> lock(TheMirrors().mutex);
  mirror->range.any_time = true;
}

bool IsMirrored(uint64_t device_address) {
  if (!AnyMirrors()) return false;
  Mirrors& mirrors = TheMirrors();
  std::lock_guard<std::mutex> lock(mirrors.mutex);
  return std::any_of(mirrors.by_address.begin(), mirrors.by_address.end(), [&](const auto& entry) {
    const Mirror& mirror = *entry.second;
    return device_address - mirror.range.device_address < mirror.reserved;
  });
}

bool FindMirror(uint64_t address, uint64_t* device_address) {
  if (!AnyMirrors()) return false;
  Mirrors& mirrors = TheMirrors();
  std::lock_guard<std::mutex> lock(mirrors.mutex);
  auto after = mirrors.by_address.upper_bound(address);
  if (after == mirrors.by_address.begin()) return false;
  const MirrorRange& range = std::prev(after)->second->range;
  if (address - range.address >= range.bytes) return false;
  *device_address = range.device_address + (address - range.address);
  return true;
}

void DeviceWork::Begin(Stream* stream) {
  if (stream->capture.load() != nullptr) return;
  Mirrors& mirrors = TheMirrors();
  std::lock_guard<std::mutex> lock(mirrors.mutex);
  PushAll(mirrors);
  Order(mirrors, stream);
  mirrors.handed.store(true);
  ++mirrors.works;
  ++mirrors.begun;
  begun_ = true;
}

void DeviceWork::End() {
  Mirrors& mirrors = TheMirrors();
  std::lock_guard<std::mutex> lock(mirrors.mutex);
  --mirrors.begun;
}

void SendHostWrites() {
  if (!AnyMirrors()) return;
  Mirrors& mirrors = TheMirrors();
  std::vector<StreamPoint> points;
  {
    std::lock_guard<std::mutex> lock(mirrors.mutex);
    PushAll(mirrors);
    // It is still the program's turn where it was.
    for (auto& [address, mirror] : mirrors.by_address) mirror->host_turn = true;
    for (auto& [number, channel] : mirrors.channels) {
      if (channel->stream->finished.load() >= channel->position) continue;
      Retain(channel->stream);
      points.push_back({channel->stream, channel->position});
    }
  }
  AwaitWork(points);
}

}  // namespace longwire::shim
