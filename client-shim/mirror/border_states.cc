#include "client-shim/mirror/border_states.h"

#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "client-shim/mirror/arrived_state.h"
#include "client-shim/mirror/held_pages.h"
#include "client-shim/mirror/one_word.h"
#include "client-shim/mirror/running_work.h"
#include "client-shim/mirror/sent_states.h"
#include "client-shim/mirror/words.h"
#include "client-shim/session/session.h"
#include "client-shim/support/never_destroyed.h"
#include "client-shim/support/threads.h"
#include "longwire/calls.h"
#include "wire/guards.h"
#include "wire/live/mirror_state.h"
#include "wire/switches.h"

namespace longwire::shim {
namespace {

bool AreWhole() {
  static const bool whole =
      !wire::IsSwitchedOff("whole-states") && !wire::GuardIsOff("border_states");
  return whole;
}

// Of the process, ours among them. 0: the system does not say. A folder for each lies in this one,
// which has two links more.
uint64_t Threads() {
  struct stat folder {};
  return stat("/proc/self/task", &folder) == 0 && folder.st_nlink > 2 ? folder.st_nlink - 2 : 0;
}

// Threads of the program beside the one that waits. (One of ours that is not counted makes a border
// cost more, and nothing else.)
bool OthersMayLook() {
  const uint64_t threads = Threads();
  return threads == 0 || threads > 1 + static_cast<uint64_t>(OwnThreads());
}

bool HasChanges(Mirrors& mirrors) {
  base::MutexLock lock(mirrors.arrived_mutex);
  return std::ranges::any_of(mirrors.arrived,
                             [](const Arrived& one) { return !one.delta.empty(); });
}

// The program must not touch managed memory while kernels run, so that alone nobody looks at.
bool AnyPinned(const Mirrors& mirrors) LONGWIRE_REQUIRES(mirrors.mutex) {
  return std::ranges::any_of(mirrors.by_address,
                             [](const auto& one) { return !one.second->range.managed; });
}

// Work that runs, in another stream than the awaited one, may look at the memory if it waited for
// it before, or has stood still for a moment.
bool KernelsMayLook(const Mirrors& mirrors, const Stream* awaited = nullptr)
    LONGWIRE_REQUIRES(mirrors.mutex) {
  if (!mirrors.converses && !(mirrors.stands_still && AnyPinned(mirrors))) return false;
  const Progress running = UnfinishedStreams();
  return std::ranges::any_of(
      running, [&](const auto& one) { return awaited == nullptr || one.first != awaited->id; });
}

// True if there is nothing left to send.
bool PushThrough(Mirrors& mirrors, Channel& channel) LONGWIRE_REQUIRES(mirrors.mutex) {
  static NeverDestroyed<OneWord> one_word;  // the lock guards these
  static NeverDestroyed<ProgramState> state;
  std::vector<MirrorPart> parts;
  if (!PartsOfState(mirrors, channel, &parts) || AreIndependent(channel)) return false;
  wire::ChangedWord word;
  Mirror* mirror = nullptr;
  const OneWord::Found found = one_word->Find(parts, &mirror, &word);
  if (found == OneWord::Found::kNone) return true;
  if (found == OneWord::Found::kWord) return PushWord(mirrors, channel, *mirror, word);
  if (found == OneWord::Found::kUnreadable) return false;
  const ProgramState::Taken taken = state->Take(parts);
  if (taken == ProgramState::Taken::kState) PushState(mirrors, channel, *state);
  return taken == ProgramState::Taken::kState || taken == ProgramState::Taken::kSame;
}

// False: the mirrors are more than the worker compares.
bool AskFor(Mirrors& mirrors, std::span<const MirrorPart> parts, calls::lwMirrorLook* look)
    LONGWIRE_REQUIRES(mirrors.mutex) {
  uint64_t bytes = 0;
  look->whole = true;
  for (const MirrorPart& part : parts) {
    look->mirror.push_back(part.mirror->id);
    look->bytes.push_back(part.bytes);
    bytes += part.bytes;
  }
  if (parts.size() > wire::kComparedMirrors || bytes > wire::kComparedBytes) return false;
  mirrors.AwaitConflict();
  for (const MirrorPart& part : parts) mirrors.AwaitChanges(part.bytes);
  return true;
}

// True if a state has come, or nothing has changed.
bool PullThrough(Mirrors& mirrors, Channel& channel) LONGWIRE_REQUIRES(mirrors.mutex) {
  std::vector<MirrorPart> parts;
  calls::lwMirrorLook look;
  if (!PartsOfState(mirrors, channel, &parts) || AreIndependent(channel)) return false;
  if (parts.empty()) return true;
  if (!AskFor(mirrors, parts, &look)) return false;
  // The answer's end names it (lwMirrorLook).
  const uint64_t first = look.mirror.front(), sent = mirrors.sent;
  mirrors.answered.erase(first);
  mirrors.asked.insert(sent);
  mirrors.awaits_state = mirrors.pulling = true;
  Stream* stream = channel.stream;
  const uint64_t position = stream->session->Submit(channel.where(), look, look.EncodedBytes());
  Retain(stream);
  mirrors.mutex.Unlock();
  const CUresult result = AwaitStream(stream, position);
  Release(stream);
  mirrors.mutex.Lock();
  mirrors.awaits_state = mirrors.pulling = false;
  const bool applied = result == CUDA_SUCCESS && ApplyArrivedAsState(mirrors, Conflicts::kAll);
  mirrors.asked.erase(mirrors.asked.find(sent));
  mirrors.pulled.NotifyAll();
  return applied && mirrors.answered.erase(first) == 1;
}

}  // namespace

bool RunsBeside(const Mirrors& mirrors, const Stream* awaited) {
  return AreWhole() && KernelsMayLook(mirrors, awaited) && MayHoldPages();
}

void ApplyAtBorder(Mirrors& mirrors) {
  if (AreWhole() && HasChanges(mirrors) && OthersMayLook() && MayHoldPages() &&
      ApplyArrivedAsState(mirrors, Conflicts::kOfManaged)) {
    return;
  }
  ApplyArrived(mirrors);
}

bool PushAsStates(Mirrors& mirrors) {
  if (!AreWhole() || !KernelsMayLook(mirrors)) return false;
  bool all = true;
  for (auto& [number, channel] : mirrors.channels) all &= PushThrough(mirrors, *channel);
  return all;
}

bool PullAsState(Mirrors& mirrors) {
  if (!AreWhole() || !KernelsMayLook(mirrors) || !MayHoldPages()) return false;
  std::vector<std::shared_ptr<Channel>> channels;  // the lock is released meanwhile
  for (auto& [number, channel] : mirrors.channels) channels.push_back(channel);
  for (const std::shared_ptr<Channel>& channel : channels) {
    if (!PullThrough(mirrors, *channel)) return false;
  }
  return true;
}

}  // namespace longwire::shim
