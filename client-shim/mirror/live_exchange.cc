#include "client-shim/mirror/live_exchange.h"

#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>
#include <utility>

#include "base/memory_sizes.h"
#include "client-shim/mirror/arrived_state.h"
#include "client-shim/mirror/file_mirrors.h"
#include "client-shim/mirror/held_pages.h"
#include "client-shim/mirror/look_choice.h"
#include "client-shim/mirror/mirror_table.h"
#include "client-shim/mirror/one_word.h"
#include "client-shim/mirror/program_state.h"
#include "client-shim/mirror/running_work.h"
#include "client-shim/mirror/sent_states.h"
#include "client-shim/mirror/standstill.h"
#include "client-shim/mirror/words.h"
#include "client-shim/stream/host_writes.h"
#include "client-shim/support/own_memory.h"
#include "client-shim/support/threads.h"
#include "longwire/calls.h"
#include "wire/guards.h"
#include "wire/live/changed_word.h"
#include "wire/live/mirror_state.h"
#include "wire/rings/spinning.h"
#include "wire/switches.h"

namespace longwire::shim {
namespace {

using std::chrono::microseconds;
using Clock = std::chrono::steady_clock;

// The pause between looks: the first after a change, and the last where nothing changes.
constexpr microseconds kShortestPause{20}, kLongestPause{5000};
// A look at this many bytes is followed by a pause of at least a millisecond.
constexpr uint64_t kBytesInAMillisecond = uint64_t{128} << 10;
// While words change, somebody probably waits for the next one: about as long as comparing takes.
constexpr uint64_t kFastBytesInAMillisecond = uint64_t{4} << 20;
constexpr microseconds kFirstPoll{10}, kLastPoll{500};
// In a conversation nothing sleeps: to be woken takes as long as a word's way. It has ended when
// nothing was exchanged for this time.
constexpr microseconds kConversation{300};
// So soon a program mostly answers what it has got: its word shall leave at once.
constexpr microseconds kAnswered{30};
// What is compared so often that nobody has to sleep meanwhile.
constexpr uint64_t kSpunBytes = uint64_t{16} << 10;
// A stream that has not moved for this time may wait for memory: borders beside it are states.
constexpr std::chrono::milliseconds kStill{20};
// The first version of the protocol whose workers know looks.
constexpr uint32_t kLooks = 14;

// Beyond that nothing is exchanged. (A copy of 1 GiB takes 0.1 to 0.2 s, and nothing is queued
// meanwhile.)
constexpr uint64_t kSearchedMemory = uint64_t{1} << 30;
// Comparing so much takes long, and nothing is queued meanwhile: it is done again after this many
// times of what it took.
constexpr int kRestOfSearches = 50;

// States of several words are exchanged where work stands still. One to the device costs it some
// milliseconds, and the first one half a GiB. So does one to the program, where a kernel writes all
// the time; and kernels may do so for a while that nobody waits for.
using std::chrono::milliseconds;
constexpr Standstill::Terms kStatesUp{milliseconds(500), milliseconds(1), milliseconds(500), true};
constexpr Standstill::Terms kStatesDown{milliseconds(500), milliseconds(1), milliseconds(100)};

// What the mirrors of one channel have, as it is compared.
struct Compared {
  std::shared_ptr<Channel> channel;
  std::vector<MirrorPart> parts;
  uint64_t bytes = 0;
  bool independent = false;
  // Whether the worker is asked for the device's words. It copies no more than that at once; of
  // more memory, and of managed memory alone, only the program's words are sent.
  bool looks = true;
  // Whether it may be asked for states, which it finds without copying everything.
  bool states = true;
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
  if (!any_pinned && all->independent) return false;
  if (all->independent) {
    all->parts = choice.Choose(found);
  } else {
    for (Mirror* mirror : found) all->parts.push_back({mirror, 0, mirror->range.bytes});
  }
  for (const MirrorPart& part : all->parts) all->bytes += part.bytes;
  all->looks =
      any_pinned && all->bytes <= wire::kLookBytes && all->parts.size() <= wire::kLookMirrors;
  all->states = !all->independent && all->bytes <= wire::kComparedBytes &&
                all->parts.size() <= wire::kComparedMirrors;
  return all->bytes <= kSearchedMemory && all->channel->stream->context->sticky.load() == 0 &&
         session->opened().protocol >= kLooks;
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

  // A look at both sides, where the program's work has come as far as `progress`; true if anything
  // has changed.
  bool Run(Mirrors& mirrors, const Progress& progress);
  // After it: the shortest time until the next one, and the longest.
  microseconds Pause(bool changed) const {
    if (!looks_) return kMoment;
    const bool fast = changed || LongestPause() < kLongestPause;
    const uint64_t rate = fast ? kFastBytesInAMillisecond : kBytesInAMillisecond;
    return std::max(kShortestPause, microseconds(1000 * bytes_ / rate));
  }
  microseconds LongestPause() const {
    const auto due = std::min(up_.pause(), down_.pause());
    return std::min(kLongestPause, std::chrono::duration_cast<microseconds>(due));
  }
  // Both sides answer each other's words.
  bool Converses() const;
  // Instead of a pause: until the program has changed something, or is not likely to do so soon.
  void AwaitWord(Mirrors& mirrors);

 private:
  bool SendWord(Mirrors& mirrors, const Compared& all) LONGWIRE_REQUIRES(mirrors.mutex);
  bool SendState(Mirrors& mirrors, const Compared& all) LONGWIRE_REQUIRES(mirrors.mutex);
  bool SearchMuch(Mirrors& mirrors, const Compared& all) LONGWIRE_REQUIRES(mirrors.mutex);
  void ExpectAnswer();
  bool SendAllWords(Mirrors& mirrors, const Compared& all) LONGWIRE_REQUIRES(mirrors.mutex);
  bool MayLookForState(const Compared& all) const;
  StreamPoint SendLook(Mirrors& mirrors, const Compared& all) LONGWIRE_REQUIRES(mirrors.mutex);
  bool HasChanged(Mirrors& mirrors);
  static bool Await(const Channel& channel, uint64_t position, Clock::time_point pumps_until);

  bool TakeHeld(Mirrors& mirrors, const Channel* channel) LONGWIRE_REQUIRES(mirrors.mutex);
  void EndState(Mirrors& mirrors, Clock::time_point begun, bool changed)
      LONGWIRE_REQUIRES(mirrors.mutex);

  const uint32_t channel_;
  OneWord word_;
  ProgramCopy copy_;
  LookChoice choice_;
  uint64_t bytes_ = 0;                         // that were compared
  Clock::time_point exchanged_{}, brought_{};  // the last time: anything, and of the device
  bool looks_ = true;
  // Of searches through memory of whose words the worker is not asked.
  Clock::time_point next_{}, sooner_{};  // sooner only if the program has begun to wait
  Clock::duration hurry_ = kMoment;
  int rest_ = kRestOfSearches;  // times of what a search takes
  uint64_t waits_ = 0;          // Mirrors::waits at the last one
  // An answer of the worker is not applied yet; Mirrors::sent when it was asked for.
  bool held_ = false;
  uint64_t asked_ = 0;
  bool whole_ = false;  // it may be a state of several words
  Standstill up_{kStatesUp}, down_{kStatesDown};
  // The device had something the last time; and so it had before the last state was sent: what
  // it has then is no answer.
  bool talks_ = false, talks_before_ = false;
  ProgramState state_;
};

// True if a word was sent, or a state of several.
bool Exchange::SendWord(Mirrors& mirrors, const Compared& all) {
  wire::ChangedWord word;
  Mirror* found = nullptr;
  const OneWord::Found any = word_.Find(all.parts, &found, &word);
  if (any == OneWord::Found::kUnreadable) FindLost(mirrors);
  if (any == OneWord::Found::kMore) return SendState(mirrors, all);
  return any == OneWord::Found::kWord && PushWord(mirrors, *all.channel, *found, word);
}

// True if it was sent: more than a word has changed, and work stands still.
bool Exchange::SendState(Mirrors& mirrors, const Compared& all) {
  static const bool off = wire::IsSwitchedOff("whole-states");
  Stream* stream = all.channel->stream;
  if (off || !up_.IsDue(Clock::now()) || AwaitedForRoom(stream) != 0) return false;
  const ProgramState::Taken taken = state_.Take(all.parts);
  if (taken == ProgramState::Taken::kUnreadable) FindLost(mirrors);
  up_.NoteState(Clock::now());
  talks_before_ = talks_;
  if (taken != ProgramState::Taken::kState) return false;
  PushState(mirrors, *all.channel, state_);
  mirrors.converses = true;
  return true;
}

// The same for more memory than the worker is asked for. A program that waits may have written a
// word just before that, for which the awaited work waits: so it is searched sooner, but later each
// time, if nothing was found.
bool Exchange::SearchMuch(Mirrors& mirrors, const Compared& all) {
  const Clock::time_point begun = Clock::now();
  const bool waits = mirrors.waits != waits_ && begun >= sooner_;
  if (begun < next_ && !waits) return false;
  waits_ = mirrors.waits;
  const bool sent = SendWord(mirrors, all);
  const Clock::time_point ended = Clock::now();
  const Clock::duration took = ended - begun;
  hurry_ = sent ? kMoment : std::min<Clock::duration>(2 * hurry_, kRestOfSearches * took);
  sooner_ = ended + hurry_;
  rest_ = sent ? 1 : std::min(2 * rest_, kRestOfSearches);
  next_ = ended + rest_ * took;
  return sent;
}

// The program has got something: perhaps it answers soon.
void Exchange::ExpectAnswer() {
  rest_ = 1;
  next_ = {};
}

// The same for independent words, of which one copy does; those at higher addresses first.
bool Exchange::SendAllWords(Mirrors& mirrors, const Compared& all) {
  if (!copy_.Make(all.parts)) {
    FindLost(mirrors);
    return false;
  }
  bool any = false;
  for (size_t i = all.parts.size(); i-- > 0;) {
    const MirrorPart& part = all.parts[i];
    if (!SendWords(mirrors, *part.mirror, part.offset, copy_.ranges()[i].now)) continue;
    choice_.Note(part.mirror->id, part.offset);
    any = true;
  }
  if (!any) return false;
  RecordSent(mirrors, *all.channel);
  ++mirrors.words;
  return true;
}

// Where work stands still; and once behind it, for the last message. Several words must become
// visible to the program at once: not asked for, where no pages can be held.
bool Exchange::MayLookForState(const Compared& all) const {
  static const bool off = wire::IsSwitchedOff("whole-states");
  const Clock::time_point now = Clock::now();
  const bool due = down_.IsDue(now) || (down_.IsOver(now) && TheMirrors().handed.load());
  return due && !off && all.states && MayHoldPages();
}

// Asks for what the device has changed. The answer is there once the point has passed.
StreamPoint Exchange::SendLook(Mirrors& mirrors, const Compared& all) {
  calls::lwMirrorLook look;
  look.independent = all.independent;
  look.whole = whole_;
  mirrors.AwaitConflict();  // a word is as much
  for (const MirrorPart& part : all.parts) {
    look.mirror.push_back(part.mirror->id);
    look.bytes.push_back(part.bytes);
    if (all.independent) look.offset.push_back(part.offset);
    if (all.independent || whole_) mirrors.AwaitChanges(part.bytes);
  }
  Stream* stream = all.channel->stream;
  const uint64_t position =
      stream->session->Submit(all.channel->where(), look, look.EncodedBytes());
  Retain(stream);
  return {stream, position};
}

bool Exchange::Converses() const {
  static const bool off = wire::IsSwitchedOff("live-spins") || wire::AllowedCores() < 2;
  return !off && looks_ && bytes_ <= kSpunBytes && Clock::now() - exchanged_ < kConversation;
}

bool Exchange::HasChanged(Mirrors& mirrors) {
  base::MutexLock lock(mirrors.mutex);
  Compared all;
  wire::ChangedWord word;
  return !Collect(mirrors, channel_, choice_, &all) || !copy_.Make(all.parts) ||
         wire::FindDifference(copy_.ranges(), &word) != wire::Difference::kNone;
}

void Exchange::AwaitWord(Mirrors& mirrors) {
  const Clock::time_point end = brought_ + kAnswered;
  while (Clock::now() < end && !HasChanged(mirrors)) std::this_thread::yield();
}

// In a conversation as a program's thread waits; else without being counted among these. False:
// nothing comes any more.
bool Exchange::Await(const Channel& channel, uint64_t position, Clock::time_point pumps_until) {
  Stream& stream = *channel.stream;
  const auto is_over = [&] {
    return channel.ended.load() || stream.session->ended() != CUDA_SUCCESS ||
           stream.context->sticky.load() != 0;
  };
  const auto is_there = [&] { return stream.finished.load(std::memory_order_acquire) >= position; };
  AwaitProgress(&stream, position);
  if (Clock::now() < pumps_until) {
    static_cast<void>(stream.session->WaitUntil([&] { return is_there() || is_over(); },
                                                pumps_until, ClientSession::Counts::kNo));
  }
  for (microseconds pause = kFirstPoll; !is_there(); pause = std::min(2 * pause, kLastPoll)) {
    if (is_over()) return false;
    std::this_thread::sleep_for(pause);
  }
  return true;
}

bool Exchange::Run(Mirrors& mirrors, const Progress& progress) {
  bytes_ = 0;
  up_.Observe(progress, Clock::now());
  down_.Observe(progress, Clock::now());
  base::MutexLock lock(mirrors.mutex);
  mirrors.stands_still = up_.AnyStandsFor(kStill, Clock::now());
  Compared all;
  // While another thread takes in what the device wrote, a word could be in both directions at
  // once.
  if (mirrors.pulling) return false;
  if (!Collect(mirrors, channel_, choice_, &all)) return TakeHeld(mirrors, nullptr);
  bytes_ = all.bytes;
  looks_ = all.looks;
  KeepPromise(mirrors);
  const bool sent_word = all.independent ? SendAllWords(mirrors, all)
                         : all.looks     ? SendWord(mirrors, all)
                                         : SearchMuch(mirrors, all);
  if (held_ || CopiesAreOnTheirWay()) return TakeHeld(mirrors, all.channel.get()) || sent_word;
  whole_ = MayLookForState(all);
  if (!all.looks && !whole_) return sent_word;
  const uint64_t applied = mirrors.applied;
  held_ = true;
  const Clock::time_point begun = Clock::now();
  mirrors.awaits_state = whole_;
  asked_ = mirrors.sent;
  mirrors.asked.insert(asked_);
  const StreamPoint point = SendLook(mirrors, all);
  lock.Unlock();
  if (point.position != ClientSession::kNoPosition) {
    Await(*all.channel, point.position, Converses() ? begun + kLongestPause : begun);
  }
  Release(point.stream);
  lock.Lock();
  TakeHeld(mirrors, all.channel.get());
  const bool brought = mirrors.applied != applied;
  if (whole_) EndState(mirrors, begun, brought);
  if (whole_ && brought) mirrors.converses = true;
  if (brought) brought_ = Clock::now();
  if (sent_word || brought) exchanged_ = Clock::now();
  return sent_word || brought;
}

// Whether all words that have come may be stored: the program may have protected their pages, until
// it wants to touch them itself.
bool MayApply(Mirrors& mirrors, LookChoice& choice, bool whole) LONGWIRE_REQUIRES(mirrors.mutex) {
  base::MutexLock lock(mirrors.arrived_mutex);
  std::vector<wire::DeltaRun> runs;
  WritablePages pages;
  const std::map<uint64_t, Mirror*> by_id = MirrorsById(mirrors);
  const bool borders = !whole && (mirrors.pulling || mirrors.asked.size() > 1);
  for (const Arrived& one : mirrors.arrived) {
    const auto found = by_id.find(one.mirror);
    if (found == by_id.end() || !IsThere(*found->second)) continue;
    runs.clear();
    static_cast<void>(wire::ReadDelta(one.delta, found->second->reserved, &runs,
                                      wire::MaskedAs::kPages));  // Apply sees errors
    uint64_t noted = UINT64_MAX;
    for (const wire::DeltaRun& run : runs) {
      // Of a border whose other answers are still to come: all of them are applied at once.
      if (borders && run.form != wire::PageForm::kWord) return false;
      if (run.offset / LookChoice::kPartBytes != noted) choice.Note(one.mirror, run.offset);
      noted = run.offset / LookChoice::kPartBytes;
      const bool word = run.form == wire::PageForm::kWord;
      if (word && !pages.MayWrite(found->second->range.address + run.offset)) return false;
    }
  }
  return true;
}

// Applies the answer, unless copies were queued meanwhile and their bytes are still on their way:
// what the device has written behind such a copy would arrive first. No channel: whatever is left.
bool Exchange::TakeHeld(Mirrors& mirrors, const Channel* channel) {
  if (!held_) return false;
  if (channel != nullptr && (CopiesAreOnTheirWay() || !MayApply(mirrors, choice_, whole_)))
    return false;
  const uint64_t applied = mirrors.applied;
  if (channel != nullptr && whole_) {
    if (!ApplyArrivedAsState(mirrors, Conflicts::kAll)) return false;
  } else if (channel != nullptr) {
    ApplyArrived(mirrors);
  }
  const bool changed = mirrors.applied != applied;
  if (changed && !talks_before_) up_.NoteAnswer();
  talks_ = changed;
  mirrors.asked.erase(mirrors.asked.find(asked_));
  held_ = false;
  return changed;
}

// The state has come, or nothing. What could not be applied is left to whoever can.
void Exchange::EndState(Mirrors& mirrors, Clock::time_point begun, bool changed) {
  down_.NoteState(Clock::now(), Clock::now() - begun);
  if (changed) {
    down_.NoteAnswer();
    ExpectAnswer();
  }
  mirrors.awaits_state = false;
  mirrors.pulled.NotifyAll();
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
      const Progress progress = UnfinishedStreams();
      runs = !progress.empty();
      changed = false;
      microseconds least = kShortestPause, most = kLongestPause;
      AddNew(mirrors, &exchanges);
      for (auto& [channel, exchange] : exchanges) {
        const bool here = exchange.Run(mirrors, progress);
        least = std::max(least, exchange.Pause(here));
        most = std::min(most, exchange.LongestPause());
        changed |= here;
      }
      pause = changed ? least : std::max(least, std::min(2 * pause, most));
      auto spins =
          std::ranges::find_if(exchanges, [](auto& one) { return one.second.Converses(); });
      if (spins == exchanges.end()) {
        std::this_thread::sleep_for(pause);
      } else {
        spins->second.AwaitWord(mirrors);
      }
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
