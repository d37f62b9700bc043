// Pulls: what the device wrote to mirrored memory is copied to the program's.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <cstring>
#include <optional>

#include "client-shim/connect/options.h"
#include "client-shim/entry/error_log.h"
#include "client-shim/mirror/border_states.h"
#include "client-shim/mirror/file_mirrors.h"
#include "client-shim/mirror/mirror_table.h"
#include "client-shim/mirror/words.h"
#include "client-shim/session/session.h"
#include "longwire/calls.h"
#include "wire/page_delta.h"
#include "wire/switches.h"

namespace longwire::shim {
namespace {

// The largest pull behind work, of one mirror (see the call's description) and of all. Larger ones
// go through the mirrors' own streams, where a part is copied while the previous one is compared.
constexpr uint64_t kBytesBehindWork = uint64_t{1} << 20;

// True if no stream of the program has unfinished work, except what is finished at `awaited`.
bool DeviceIsIdle(const Mirrors& mirrors, const StreamPoint* awaited)
    LONGWIRE_REQUIRES(mirrors.mutex) {
  bool idle = true;
  for (StreamPoint& point : UnfinishedWorkOfAll()) {
    bool done = awaited != nullptr && point.stream == awaited->stream &&
                point.position <= awaited->position;
    idle = idle && (done || IsChannel(mirrors, point.stream));
    Release(point.stream);
  }
  return idle;
}

constexpr uint64_t kNone = UINT64_MAX;

// The first byte of the run that the program has changed to another value.
uint64_t ConflictIn(const Mirror& mirror, const wire::DeltaRun& run) {
  if (run.form == wire::PageForm::kConflict) return run.offset;
  if (!mirror.range.managed) return kNone;
  const std::byte* memory = mirror.memory().data() + run.offset;
  const std::byte* shadow = mirror.shadow + run.offset;
  if (std::memcmp(memory, shadow, run.bytes.size()) == 0) return kNone;
  for (size_t i = 0; i < run.bytes.size(); ++i) {
    bool both = memory[i] != shadow[i] && run.bytes[i] != shadow[i];
    if (both && memory[i] != run.bytes[i]) return run.offset + i;
  }
  return kNone;
}

// A word that the device has changed while work runs. The program may look at it, and change other
// bytes of it. What it says is kNone, or the first byte that both have changed.
uint64_t ApplyWord(Mirror& mirror, const wire::DeltaRun& run, WritablePages& pages) {
  auto* place = reinterpret_cast<std::byte*>(mirror.range.address + run.offset);
  std::byte* shadow = mirror.shadow + run.offset;
  const size_t bytes = run.bytes.size();
  uint64_t conflict = kNone;
  if (!pages.MayWrite(mirror, mirror.range.address + run.offset)) return kNone;
  for (size_t i = 0; i < bytes; ++i) {
    if (run.was[i] == run.bytes[i]) continue;
    // Something was sent that the device had not seen; or the program has changed it since.
    const bool both = (shadow[i] != run.was[i] && shadow[i] != run.bytes[i]) ||
                      (place[i] != shadow[i] && place[i] != run.bytes[i]);
    if (both && conflict == kNone) conflict = run.offset + i;
  }
  while (!wire::StoreWord(place, static_cast<uint32_t>(bytes), run.was.data(), run.bytes.data())) {
    if (conflict == kNone) conflict = run.offset;
    // The device's value stays, where the program has written as well.
    std::array<std::byte, 8> now;
    std::copy_n(place, bytes, now.begin());
    for (size_t i = 0; i < bytes; ++i) {
      if (run.was[i] != run.bytes[i] && now[i] != run.bytes[i]) place[i] = run.bytes[i];
    }
  }
  for (size_t i = 0; i < bytes; ++i) {
    if (run.was[i] != run.bytes[i]) shadow[i] = run.bytes[i];
  }
  return conflict;
}

// A run of a border. Where both sides have changed a byte, the device's value stays.
void ApplyRun(Mirror& mirror, const wire::DeltaRun& run, bool sent_meanwhile) {
  std::byte* shadow = mirror.shadow + run.offset;
  if (!sent_meanwhile) {
    WriteMemory(mirror, run.offset, run.bytes);
    std::memcpy(shadow, run.bytes.data(), run.bytes.size());
    return;
  }
  // Bytes that equal the shadow came before; the program may have changed them since.
  for (size_t i = 0; i < run.bytes.size(); ++i) {
    if (shadow[i] == run.bytes[i]) continue;
    shadow[i] = run.bytes[i];
    WriteMemory(mirror, run.offset + i, run.bytes.subspan(i, 1));
  }
}

// A masked page of a border, where nothing was sent meanwhile, of memory that stays. The program
// may write other bytes of the page, so those whose bits are not set are not touched. The answer is
// kNone, or the first byte that the program has changed to another value.
uint64_t ApplyPage(Mirror& mirror, const wire::DeltaRun& page) {
  std::byte* shadow = mirror.shadow + page.offset;
  auto* memory = reinterpret_cast<std::byte*>(mirror.range.address + page.offset);
  const size_t bytes = 8 * page.mask.size();
  const bool compares = mirror.range.managed && std::memcmp(memory, shadow, bytes) != 0;
  uint64_t conflict = kNone;
  wire::EachMaskedWord(page, [&](const wire::MaskedWord& word) {
    for (size_t i = 0; compares && conflict == kNone && i < 8; ++i) {
      const size_t at = word.at + i;
      const bool both = (word.bits >> i & 1) != 0 && memory[at] != shadow[at];
      if (both && memory[at] != word.value[i]) conflict = page.offset + at;
    }
    if (word.bits == 0xff) {
      std::memcpy(memory + word.at, word.value.data(), 8);
      std::memcpy(shadow + word.at, word.value.data(), 8);
      return;
    }
    for (unsigned left = word.bits; left != 0; left &= left - 1) {
      const auto i = static_cast<size_t>(std::countr_zero(left));
      memory[word.at + i] = shadow[word.at + i] = word.value[i];
    }
  });
  return conflict;
}

// False: the server is not to be trusted.
bool ApplyRuns(Mirror& mirror, std::span<const wire::DeltaRun> runs, bool sent_meanwhile) {
  const bool independent = AreIndependent(*mirror.channel);
  uint64_t conflict = kNone;
  WritablePages pages;
  for (const wire::DeltaRun& run : runs) {
    uint64_t found = kNone;
    if (!run.mask.empty()) {
      found = ApplyPage(mirror, run);
    } else if (run.form == wire::PageForm::kWord) {
      if ((mirror.range.address + run.offset) % run.bytes.size() != 0) return false;
      found = ApplyWord(mirror, run, pages);
    } else {
      found = ConflictIn(mirror, run);
      if (!independent && !run.bytes.empty()) ApplyRun(mirror, run, sent_meanwhile);
    }
    if (conflict == kNone) conflict = found;
  }
  const bool masked = !runs.empty() && runs.front().form == wire::PageForm::kMasked;
  if (independent && masked) StoreRuns(mirror, runs);
  if (conflict != kNone) ReportConflict(mirror, conflict);
  return true;
}

void Apply(Mirror& mirror, std::span<const std::byte> delta, bool sent_meanwhile) {
  std::vector<wire::DeltaRun> runs;
  ClientSession* session = mirror.channel->stream->session;
  const bool by_pages =
      !sent_meanwhile && !mirror.range.may_shrink && !AreIndependent(*mirror.channel);
  const auto masked = by_pages ? wire::MaskedAs::kPages : wire::MaskedAs::kRuns;
  if (wire::ReadDelta(delta, mirror.reserved, &runs, masked) != wire::WireResult::kOk) {
    session->Distrust("sent changes of memory that cannot be read");
  } else if (!ApplyRuns(mirror, runs, sent_meanwhile)) {
    session->Distrust("sent a word that is not aligned");
  }
}

// One server of several: its contexts have ended, and the program's waits elsewhere go on.
bool HasEnded(const Channel& channel) {
  return AreSeveral() && channel.stream->session->ended() != CUDA_SUCCESS;
}

// Asks for what the device changed. The answers are there once the returned points have passed.
std::vector<StreamPoint> AskForChanges(Mirrors& mirrors) LONGWIRE_REQUIRES(mirrors.mutex) {
  KeepPromise(mirrors);
  for (auto& [address, mirror] : mirrors.by_address) {
    if (HasEnded(*mirror->channel)) continue;
    calls::lwMirrorPull pull;
    pull.mirror = mirror->id;
    pull.bytes = mirror->range.bytes;
    pull.ticket = 0;
    mirrors.AwaitChanges(pull.bytes);
    mirror->channel->stream->session->Submit(mirror->channel->where(), pull);
  }
  std::vector<StreamPoint> points;
  for (auto& [number, channel] : mirrors.channels) {
    if (HasEnded(*channel)) continue;
    Retain(channel->stream);
    points.push_back({channel->stream, channel->stream->last.load()});
  }
  return points;
}

// The only one of the points that is unfinished and in a stream of the program; nullptr if there is
// none, or several.
StreamPoint* OnlyUnfinished(std::span<StreamPoint> points) {
  StreamPoint* found = nullptr;
  for (StreamPoint& point : points) {
    bool finished = point.stream->finished.load(std::memory_order_acquire) >= point.position;
    if (finished || point.stream->internal) continue;
    if (found != nullptr) return nullptr;
    found = &point;
  }
  return found;
}

// Whether it is its stream's newest call, outside any capture: another can be queued right behind
// it.
bool IsNewest(const StreamPoint& point) {
  const Stream& stream = *point.stream;
  return stream.last.load() == point.position && stream.context->captures.load() == 0;
}

// The channel of all mirrors, if they are small and belong to the stream's context; else nullptr.
const Channel* ChannelBeside(const Mirrors& mirrors, const Stream* stream)
    LONGWIRE_REQUIRES(mirrors.mutex) {
  const Channel* channel = nullptr;
  uint64_t bytes = 0;
  for (auto& [address, mirror] : mirrors.by_address) {
    channel = mirror->channel.get();
    bytes += mirror->range.bytes;
    if (channel->stream->context != stream->context) return nullptr;
  }
  return bytes <= kBytesBehindWork ? channel : nullptr;
}

// Queues the call right behind the point and moves the point there. False if another call is there.
template <class Call>
bool SubmitAt(StreamPoint* point, const Call& call) {
  Where where{point->stream->context_number, point->stream, 0};
  uint64_t position = point->stream->session->SubmitBehind(where, call, point->position);
  if (position == ClientSession::kNoPosition) return false;
  point->position = position;
  return true;
}

// Makes the stream wait for what was pushed: the worker would take it for the device's change.
bool WaitForSent(const Channel& channel, StreamPoint* point) {
  if (channel.stream->finished.load(std::memory_order_acquire) >= channel.position) return true;
  calls::lwStreamWaitEvent wait;
  wait.event = channel.event;
  wait.version = channel.sent_version;
  wait.flags = 0;
  return SubmitAt(point, wait);
}

}  // namespace

void ReportConflict(const Mirror& mirror, uint64_t offset) {
  int none = 0;
  std::atomic<int>& once = mirror.channel->stream->context->once;
  if (!once.compare_exchange_strong(none, CUDA_ERROR_NOT_SUPPORTED)) return;
  std::array<char, 256> text;
  std::snprintf(text.data(), text.size(),
                "host and device have both changed the byte at %#llx of %s memory, to "
                "different values and with no wait in between: the device's stays "
                "(docs/host-memory.md)",
                static_cast<unsigned long long>(mirror.range.address + offset),
                mirror.range.managed ? "managed" : "pinned");
  Say("%s", text.data());
  LogErrorQuietly(text.data());
}

void ApplyArrived(Mirrors& mirrors) {
  std::vector<Arrived> arrived;
  {
    base::MutexLock lock(mirrors.arrived_mutex);
    arrived.swap(mirrors.arrived);
  }
  bool sent_meanwhile = !mirrors.asked.empty() && *mirrors.asked.begin() != mirrors.sent;
  const std::map<uint64_t, Mirror*> by_id =
      arrived.empty() ? std::map<uint64_t, Mirror*>() : MirrorsById(mirrors);
  for (const Arrived& one : arrived) {
    if (one.delta.empty()) {
      mirrors.answered.insert(one.mirror);
      continue;
    }
    ++mirrors.applied;
    auto mirror = by_id.find(one.mirror);
    if (mirror == by_id.end() || !IsThere(*mirror->second)) continue;
    Apply(*mirror->second, one.delta, sent_meanwhile);
  }
}

void AwaitPull(Mirrors& mirrors, base::MutexLock& lock) {
  while (mirrors.pulling || mirrors.awaits_state) mirrors.pulled.Wait(lock);
}

void AwaitedWrites::Ask(std::span<StreamPoint> points) {
  static const bool off = wire::IsSwitchedOff("pulls-with-waits");
  Mirrors& mirrors = TheMirrors();
  StreamPoint* awaited = OnlyUnfinished(points);
  if (off || awaited == nullptr || !mirrors.handed.load() || !IsNewest(*awaited)) return;
  base::MutexLock lock(mirrors.mutex);
  const Channel* channel = ChannelBeside(mirrors, awaited->stream);
  if (channel == nullptr || RunsBeside(mirrors, awaited->stream)) return;
  everything_ = mirrors.begun == 0 && DeviceIsIdle(mirrors, awaited);
  works_ = mirrors.works;
  sent_ = mirrors.sent;
  bool asked = WaitForSent(*channel, awaited);
  for (auto& [address, mirror] : mirrors.by_address) {
    calls::lwMirrorPull pull;
    pull.mirror = mirror->id;
    pull.bytes = mirror->range.bytes;
    pull.ticket = awaited->stream->session->NewId();
    mirrors.AwaitChanges(pull.bytes);
    asked = asked && SubmitAt(awaited, pull);
    tickets_.push_back(pull.ticket);
  }
  mirrors.asked.insert(sent_);
}

bool AwaitedWrites::TakeThem() {
  Mirrors& mirrors = TheMirrors();
  base::MutexLock lock(mirrors.mutex);
  while (mirrors.awaits_state) mirrors.pulled.Wait(lock);
  ApplyAtBorder(mirrors);
  mirrors.asked.erase(mirrors.asked.find(sent_));
  bool all = true;
  for (uint64_t ticket : tickets_) all = mirrors.answered.erase(ticket) == 1 && all;
  tickets_.clear();
  if (all && everything_ && mirrors.works == works_) mirrors.handed.store(false);
  return all;
}

CUresult AwaitedWrites::Return() {
  bool there = !tickets_.empty() && TakeThem();
  return there ? CUDA_SUCCESS : ReturnDeviceWrites();
}

CUresult ReturnDeviceWrites() {
  if (!AnyMirrors()) return CUDA_SUCCESS;
  Mirrors& mirrors = TheMirrors();
  if (!mirrors.handed.load()) return CUDA_SUCCESS;
  base::MutexLock lock(mirrors.mutex);
  AwaitPull(mirrors, lock);
  if (!mirrors.handed.load()) return CUDA_SUCCESS;  // another thread's wait brought it
  if (PullAsState(mirrors)) return ClientSession::over();
  const bool idle = mirrors.begun == 0 && DeviceIsIdle(mirrors, nullptr);
  const uint64_t works = mirrors.works, sent = mirrors.sent;
  mirrors.asked.insert(sent);
  std::vector<StreamPoint> points = AskForChanges(mirrors);
  mirrors.pulling = true;
  lock.Unlock();
  CUresult result = AwaitWork(points);
  lock.Lock();
  mirrors.pulling = false;
  mirrors.pulled.NotifyAll();
  ApplyAtBorder(mirrors);
  mirrors.asked.erase(mirrors.asked.find(sent));
  if (result != CUDA_SUCCESS) return result;
  if (idle && mirrors.works == works) mirrors.handed.store(false);
  return ClientSession::over();
}

bool OnMirrorDelta(uint64_t mirror, std::span<const std::byte> delta) {
  Mirrors& mirrors = TheMirrors();
  int64_t cost = static_cast<int64_t>(delta.size()) + Mirrors::kDeltaCost;
  if (mirrors.awaited.fetch_sub(cost) < cost) return false;
  base::MutexLock lock(mirrors.arrived_mutex);
  mirrors.arrived.push_back({mirror, {delta.begin(), delta.end()}});
  return true;
}

}  // namespace longwire::shim
