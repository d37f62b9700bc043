#include "client-shim/mirror/live_exchange.h"

#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <thread>
#include <utility>

#include "base/memory_sizes.h"
#include "client-shim/mirror/file_mirrors.h"
#include "client-shim/mirror/look_choice.h"
#include "client-shim/mirror/mirror_table.h"
#include "client-shim/mirror/words.h"
#include "client-shim/stream/host_writes.h"
#include "client-shim/support/own_memory.h"
#include "client-shim/support/threads.h"
#include "longwire/calls.h"
#include "wire/guards.h"
#include "wire/live/changed_word.h"
#include "wire/switches.h"

namespace longwire::shim {
namespace {

using std::chrono::microseconds;
using Clock = std::chrono::steady_clock;

// Work that ends within this time is none of ours.
constexpr microseconds kMoment{1000};
// After this number of moments without such work the thread sleeps until work is queued.
constexpr int kIdleMoments = 20;
// The pause between looks: the first after a change, and the last where nothing changes.
constexpr microseconds kShortestPause{20}, kLongestPause{5000};
// A look at this many bytes is followed by a pause of at least a millisecond.
constexpr uint64_t kBytesInAMillisecond = uint64_t{128} << 10;
// While words change, somebody probably waits for the next one: about as long as comparing takes.
constexpr uint64_t kFastBytesInAMillisecond = uint64_t{4} << 20;
constexpr microseconds kFirstPoll{10}, kLastPoll{500};
// The first version of the protocol whose workers know looks.
constexpr uint32_t kLooks = 14;

// Streams with unfinished work, and how far each has come.
using Progress = std::set<std::pair<uint64_t, uint64_t>>;

Progress UnfinishedStreams() {
  Progress progress;
  for (StreamPoint& point : UnfinishedWorkOfAll()) {
    if (!point.stream->internal) progress.insert({point.stream->id, point.stream->finished.load()});
    Release(point.stream);
  }
  return progress;
}

// What the mirrors of one channel have, as it is compared.
struct Compared {
  std::shared_ptr<Channel> channel;
  std::vector<MirrorPart> parts;
  uint64_t bytes = 0;
  bool independent = false;
};

// False: nothing can be exchanged while work runs. Everything that the program shares with the
// kernels of a server belongs to a state, managed memory as well, and one channel has to carry it;
// but where words are independent there are no states.
bool Collect(Mirrors& mirrors, uint32_t channel, LookChoice& choice, Compared* all)
    LONGWIRE_REQUIRES(mirrors.mutex) {
  auto known = mirrors.channels.find(channel);
  if (known == mirrors.channels.end()) return false;
  all->channel = known->second;
  all->independent = AreIndependent(*all->channel);
  const ClientSession* session = all->channel->stream->session;
  std::vector<Mirror*> found;
  bool any_pinned = false;
  for (auto& [address, mirror] : mirrors.by_address) {
    if (!IsThere(*mirror) || mirror->channel->stream->session != session) continue;
    const bool other = mirror->channel != all->channel;
    if (other && !all->independent) return false;
    if (other) continue;
    any_pinned |= !mirror->range.managed;
    if (all->independent && mirror->range.managed) continue;
    found.push_back(mirror.get());
  }
  if (!any_pinned) return false;
  if (all->independent) {
    all->parts = choice.Choose(found);
  } else {
    for (Mirror* mirror : found) all->parts.push_back({mirror, 0, mirror->range.bytes});
  }
  for (const MirrorPart& part : all->parts) all->bytes += part.bytes;
  return all->bytes <= wire::kLookBytes && all->parts.size() <= wire::kLookMirrors &&
         all->channel->stream->context->sticky.load() == 0 && session->opened().protocol >= kLooks;
}

// A copy of all of it. Each range begins as far from a cache line's begin as the memory itself, so
// that a copy takes no aligned word in two parts.
class Copied {
 public:
  bool Make(const Compared& all);
  std::span<const wire::ComparedRange> ranges() const { return ranges_; }

 private:
  std::vector<std::byte> bytes_;
  std::vector<iovec> from_, to_;
  std::vector<wire::ComparedRange> ranges_;
};

bool Copied::Make(const Compared& all) {
  constexpr uint64_t kLine = 64;
  bytes_.resize(all.bytes + (2 * all.parts.size() + 1) * kLine);
  from_.clear();
  to_.clear();
  ranges_.clear();
  uint64_t at = base::RoundUp(reinterpret_cast<uint64_t>(bytes_.data()), kLine);
  for (const MirrorPart& part : all.parts) {
    const uint64_t address = part.mirror->range.address + part.offset, bytes = part.bytes;
    auto* place = reinterpret_cast<std::byte*>(at + address % kLine);
    from_.push_back({reinterpret_cast<void*>(address), bytes});
    to_.push_back({place, bytes});
    ranges_.push_back({{place, bytes}, part.mirror->shadow + part.offset, address});
    at = base::RoundUp(at + address % kLine + bytes, kLine);
  }
  // The copies before this one are complete, and what is read later is read later.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const bool read = ReadOwnMemory(from_, to_);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return read;
}

// Whether bytes are on their way to memory of the program that is not mirrored, or will be: from
// any server, as all answers that have come are taken in together.
bool CopiesAreOnTheirWay() {
  static const bool waits = !wire::GuardIsOff("copies_first");
  const auto awaits = [](ClientSession* session) { return session->transfers().AwaitsBytes(); };
  return waits && (LateWritesAnywhere() || std::ranges::any_of(Sessions(), awaits));
}

// Through one channel.
class Exchange {
 public:
  explicit Exchange(uint32_t channel) : channel_(channel) {}

  // A look at both sides; true if anything has changed.
  bool Run(Mirrors& mirrors);
  // After it: the shortest time until the next one.
  microseconds Pause(bool changed) const {
    const uint64_t rate = changed ? kFastBytesInAMillisecond : kBytesInAMillisecond;
    return std::max(kShortestPause, microseconds(1000 * bytes_ / rate));
  }

 private:
  bool FindWord(Mirrors& mirrors, const Compared& all, wire::ChangedWord* word)
      LONGWIRE_REQUIRES(mirrors.mutex);
  bool SendWord(Mirrors& mirrors, const Compared& all) LONGWIRE_REQUIRES(mirrors.mutex);
  bool SendAllWords(Mirrors& mirrors, const Compared& all) LONGWIRE_REQUIRES(mirrors.mutex);
  static StreamPoint SendLook(Mirrors& mirrors, const Compared& all)
      LONGWIRE_REQUIRES(mirrors.mutex);
  static bool Await(const Channel& channel, uint64_t position);

  bool TakeHeld(Mirrors& mirrors, const Channel* channel) LONGWIRE_REQUIRES(mirrors.mutex);

  const uint32_t channel_;
  Copied first_, second_;
  LookChoice choice_;
  uint64_t bytes_ = 0;  // that were compared
  // An answer of the worker is not applied yet; Mirrors::sent when it was asked for.
  bool held_ = false;
  uint64_t asked_ = 0;
};

bool Exchange::FindWord(Mirrors& mirrors, const Compared& all, wire::ChangedWord* word) {
  if (!first_.Make(all)) {
    FindLost(mirrors);
    return false;
  }
  return wire::FindDifference(first_.ranges(), word) == wire::Difference::kWord &&
         second_.Make(all) && wire::Confirms(second_.ranges(), *word);
}

// True if a word was sent.
bool Exchange::SendWord(Mirrors& mirrors, const Compared& all) {
  wire::ChangedWord word;
  if (!FindWord(mirrors, all, &word)) return false;
  Stream* stream = all.channel->stream;
  if (AwaitedForRoom(stream) != 0) return false;
  const Mirror& mirror = *all.parts[word.range].mirror;
  std::vector<std::byte> delta;
  wire::AppendWord(word, &delta);
  calls::lwMirrorPush push;
  push.mirror = mirror.id;
  push.delta = delta;
  mirrors.AwaitConflict();
  stream->session->Submit(all.channel->where(), push);
  std::copy_n(word.is.begin(), word.bytes, mirror.shadow + word.offset);
  RecordSent(mirrors, *all.channel);
  ++mirrors.words;
  return true;
}

// The same for independent words, of which one copy does; those at higher addresses first.
bool Exchange::SendAllWords(Mirrors& mirrors, const Compared& all) {
  if (!first_.Make(all)) {
    FindLost(mirrors);
    return false;
  }
  bool any = false;
  for (size_t i = all.parts.size(); i-- > 0;) {
    const MirrorPart& part = all.parts[i];
    if (!SendWords(mirrors, *part.mirror, part.offset, first_.ranges()[i].now)) continue;
    choice_.Note(part.mirror->id, part.offset);
    any = true;
  }
  if (!any) return false;
  RecordSent(mirrors, *all.channel);
  ++mirrors.words;
  return true;
}

// Asks for what the device has changed. The answer is there once the point has passed.
StreamPoint Exchange::SendLook(Mirrors& mirrors, const Compared& all) {
  calls::lwMirrorLook look;
  look.independent = all.independent;
  mirrors.AwaitConflict();  // a word is as much
  for (const MirrorPart& part : all.parts) {
    look.mirror.push_back(part.mirror->id);
    look.bytes.push_back(part.bytes);
    if (!all.independent) continue;
    look.offset.push_back(part.offset);
    mirrors.AwaitChanges(part.bytes);
  }
  Stream* stream = all.channel->stream;
  const uint64_t position =
      stream->session->Submit(all.channel->where(), look, look.EncodedBytes());
  Retain(stream);
  return {stream, position};
}

// Without being counted among the threads that wait for the program. False: nothing comes any more.
bool Exchange::Await(const Channel& channel, uint64_t position) {
  Stream& stream = *channel.stream;
  AwaitProgress(&stream, position);
  for (microseconds pause = kFirstPoll; stream.finished.load(std::memory_order_acquire) < position;
       pause = std::min(2 * pause, kLastPoll)) {
    if (channel.ended.load() || stream.session->ended() != CUDA_SUCCESS) return false;
    if (stream.context->sticky.load() != 0) return false;
    std::this_thread::sleep_for(pause);
  }
  return true;
}

bool Exchange::Run(Mirrors& mirrors) {
  bytes_ = 0;
  base::MutexLock lock(mirrors.mutex);
  Compared all;
  // While another thread takes in what the device wrote, a word could be in both directions at
  // once.
  if (mirrors.pulling) return false;
  if (!Collect(mirrors, channel_, choice_, &all)) return TakeHeld(mirrors, nullptr);
  bytes_ = all.bytes;
  KeepPromise(mirrors);
  const bool sent_word = all.independent ? SendAllWords(mirrors, all) : SendWord(mirrors, all);
  if (held_ || CopiesAreOnTheirWay()) {
    return TakeHeld(mirrors, all.channel.get()) || sent_word;
  }
  const uint64_t applied = mirrors.applied;
  held_ = true;
  asked_ = mirrors.sent;
  mirrors.asked.insert(asked_);
  const StreamPoint point = SendLook(mirrors, all);
  lock.Unlock();
  if (point.position != ClientSession::kNoPosition) Await(*all.channel, point.position);
  Release(point.stream);
  lock.Lock();
  TakeHeld(mirrors, all.channel.get());
  return sent_word || mirrors.applied != applied;
}

// Whether all words that have come may be stored: the program may have protected their pages, until
// it wants to touch them itself.
bool MayApply(Mirrors& mirrors, LookChoice& choice) LONGWIRE_REQUIRES(mirrors.mutex) {
  base::MutexLock lock(mirrors.arrived_mutex);
  std::vector<wire::DeltaRun> runs;
  WritablePages pages;
  for (const Arrived& one : mirrors.arrived) {
    for (auto& [address, mirror] : mirrors.by_address) {
      if (mirror->id != one.mirror || !IsThere(*mirror)) continue;
      runs.clear();
      static_cast<void>(wire::ReadDelta(one.delta, mirror->reserved, &runs));  // Apply sees errors
      uint64_t noted = UINT64_MAX;
      for (const wire::DeltaRun& run : runs) {
        if (run.offset / LookChoice::kPartBytes != noted) choice.Note(one.mirror, run.offset);
        noted = run.offset / LookChoice::kPartBytes;
        const bool word = run.form == wire::PageForm::kWord;
        if (word && !pages.MayWrite(address + run.offset)) return false;
      }
    }
  }
  return true;
}

// Applies the answer, unless copies were queued meanwhile and their bytes are still on their way:
// what the device has written behind such a copy would arrive first. No channel: whatever is left.
bool Exchange::TakeHeld(Mirrors& mirrors, const Channel* channel) {
  if (!held_) return false;
  if (channel != nullptr && (CopiesAreOnTheirWay() || !MayApply(mirrors, choice_))) return false;
  const uint64_t applied = mirrors.applied;
  if (channel != nullptr) ApplyArrived(mirrors);
  mirrors.asked.erase(mirrors.asked.find(asked_));
  held_ = false;
  return mirrors.applied != applied;
}

// Until work has run for a moment, or there is something to look for behind it. False: the session
// has ended. *looked: the number of works behind which that was done last.
bool AwaitRunningWork(Mirrors& mirrors, uint64_t* looked) {
  Progress last;
  uint64_t works = 0;  // when unfinished ones were looked for
  for (int idle = 0; ClientSession::over() == CUDA_SUCCESS;) {
    {
      base::MutexLock lock(mirrors.mutex);
      mirrors.watcher_sleeps = idle >= kIdleMoments;
      while (mirrors.watcher_sleeps && mirrors.works == works) mirrors.work_begun.Wait(lock);
      if (mirrors.watcher_sleeps) idle = 0;
      mirrors.watcher_sleeps = false;
      works = mirrors.works;
    }
    std::this_thread::sleep_for(kMoment);
    Progress now = UnfinishedStreams();
    const bool runs = std::ranges::any_of(now, [&](const auto& one) { return last.contains(one); });
    if (runs) return true;
    idle = now.empty() ? idle + 1 : 0;
    // Work that was too short may have left something, and the program has asked for nothing.
    if (idle == kIdleMoments && mirrors.handed.load() && *looked != works) {
      *looked = works;
      return true;
    }
    last = std::move(now);
  }
  return false;
}

void AddNew(Mirrors& mirrors, std::map<uint32_t, Exchange>* exchanges) {
  base::MutexLock lock(mirrors.mutex);
  for (const auto& [number, channel] : mirrors.channels) exchanges->try_emplace(number, number);
}

void Watch(void*) {
  prctl(PR_SET_TIMERSLACK, 1000UL);  // nanoseconds
  Mirrors& mirrors = TheMirrors();
  std::map<uint32_t, Exchange> exchanges;
  uint64_t looked = 0;
  while (AwaitRunningWork(mirrors, &looked)) {
    microseconds pause = kShortestPause;
    // Once more when nothing runs any more: for the last word.
    for (bool runs = true, changed = true; runs || changed;) {
      if (ClientSession::over() != CUDA_SUCCESS) return;
      runs = !UnfinishedStreams().empty();
      changed = false;
      microseconds least = kShortestPause;
      AddNew(mirrors, &exchanges);
      for (auto& [channel, exchange] : exchanges) {
        const bool here = exchange.Run(mirrors);
        least = std::max(least, exchange.Pause(here));
        changed |= here;
      }
      pause = changed ? least : std::max(least, std::min(2 * pause, kLongestPause));
      std::this_thread::sleep_for(pause);
    }
  }
}

}  // namespace

void WatchRunningWork() {
  static const bool watches =
      !wire::IsSwitchedOff("live-exchange") && StartThread("longwire-live", Watch, nullptr);
  static_cast<void>(watches);
}

}  // namespace longwire::shim
