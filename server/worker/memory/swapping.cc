#include "server/worker/memory/swapping.h"

#include "server/worker/completion/completion.h"
#include "server/worker/completion/timeline.h"
#include "server/worker/memory/memory.h"
#include "server/worker/support/failures.h"
#include "server/worker/support/helpers.h"

namespace longwire::worker {
namespace {

using std::chrono::milliseconds;

// The keeper need not know more exactly when a session worked last.
constexpr milliseconds kRanInterval{100};

// While memory can be moved; a chunk moves as a whole.
constexpr uint64_t kLargestChunk = uint64_t{512} << 20;

}  // namespace

KeeperClient& Swapping::keeper() const { return *uses_.devices.front().keeper; }

uint64_t Swapping::largest_chunk() const {
  return watched_ && uses_.devices.size() == 1 ? kLargestChunk : 0;
}

void Swapping::Heard(int32_t device, wire::Message packet) {
  keeper::SwapWatch watch;
  keeper::SwapOut ask;
  if (message::Unpack(packet.bytes, &watch) == wire::WireResult::kOk) {
    if (device == 0) watched_ = watch.on;
    return;
  }
  if (message::Unpack(packet.bytes, &ask) == wire::WireResult::kOk) {
    auto& client = *uses_.devices[static_cast<size_t>(device)].keeper;
    bool never = uses_.devices.size() != 1;
    // A log thread that is in the middle of something may be there for long; the keeper is not to
    // wait for it.
    if (never || !resting_) {
      auto answer = never ? keeper::SwapAnswer::kNever : keeper::SwapAnswer::kBusy;
      client.Tell(keeper::SwapLeft{ask.request, static_cast<uint32_t>(answer)});
      return;
    }
  }
  base::MutexLock lock(mutex_);
  packets_.push_back(std::move(packet));
  heard_ = true;
  uses_.up.PokeConsumer();
}

void Swapping::KeeperIsGone(int32_t) {
  base::MutexLock lock(mutex_);
  gone_ = true;
  heard_ = true;
  uses_.up.PokeConsumer();
}

bool Swapping::MustWait(CallId call) {
  if (!watched_ && uses_.memory.away() == 0) return false;  // mostly
  if (NeedsNoMemory(call)) return false;
  if (uses_.memory.away() == 0) {
    auto now = Clock::now();
    if (now - ran_ < kRanInterval) return false;
    ran_ = now;
    keeper().TellIfThereIsRoom(keeper::Ran{});
    return false;
  }
  if (back_ == 0) {
    back_ = ++requests_;
    keeper::SwapBack wanted{back_};
    if (keeper().charges()) wanted.next = uses_.next_work();  // it knows version 14
    keeper().Tell(wanted);
  }
  return true;
}

bool Swapping::TakePackets() {
  std::deque<wire::Message> packets;
  bool gone = false, back = false;
  {
    base::MutexLock lock(mutex_);
    packets.swap(packets_);
    gone = gone_;
  }
  for (wire::Message& packet : packets) {
    keeper::SwapOut ask;
    if (message::KindOf(packet.bytes) == keeper::Reattach::kKind) {
      asked_ = false;
      gone |= uses_.memory.away() != 0;
      continue;
    }
    if (message::Unpack(packet.bytes, &ask) != wire::WireResult::kOk) {
      back |= TakeBack(std::move(packet));
      continue;
    }
    ask_ = std::move(ask);
    ask_until_ = Clock::now() + milliseconds(ask_.patience);
    asked_ = true;
  }
  if (gone && uses_.memory.away() != 0) {
    uses_.failures.Fatal(
        "the keeper of the device's memory has ended, and with it memory of the session "
        "that was in the host's");
  }
  return back;
}

bool Swapping::Step(bool works) {
  bool back = heard_.exchange(false) && TakePackets();
  if (!asked_) return back;
  if (!works && !back && IsIdle()) {
    LetGo();
  } else if (Clock::now() >= ask_until_) {
    Answer(ask_.request, keeper::SwapAnswer::kBusy);
  }
  return back;
}

bool Swapping::IsIdle() const {
  // The order matters: each of these hands on to the one before it.
  return uses_.helpers.idle() && uses_.log_is_idle() && !uses_.timelines.anything_watched() &&
         !uses_.completion.acting() && uses_.helpers.idle();
}

void Swapping::Answer(uint64_t request, keeper::SwapAnswer answer) {
  asked_ = false;
  keeper().Tell(keeper::SwapLeft{request, static_cast<uint32_t>(answer)});
}

void Swapping::LetGo() {
  CUresult result = uses_.memory.LetGo(ask_.chunks);
  if (result != CUDA_SUCCESS) {
    uses_.failures.Fatal("memory of the session could not be unmapped for a swap: error " +
                         std::to_string(result));
    return;
  }
  Answer(ask_.request, keeper::SwapAnswer::kLeft);
}

bool Swapping::TakeBack(wire::Message packet) {
  keeper::SwapReturned returned;
  if (message::Unpack(packet.bytes, &returned) != wire::WireResult::kOk ||
      returned.chunks.size() != packet.descriptors.size()) {
    uses_.failures.Fatal("a message of the device's keeper cannot be decoded");
    return false;
  }
  if (returned.code != 0) {
    uses_.failures.Fatal(returned.sentence + " (error " + std::to_string(returned.code) + ")");
    return false;
  }
  std::vector<KeeperClient::Chunk> chunks;
  for (size_t i = 0; i < returned.chunks.size(); ++i) {
    chunks.push_back(
        {returned.chunks[i].chunk, returned.chunks[i].bytes, std::move(packet.descriptors[i])});
  }
  CUresult result = uses_.memory.TakeBack(chunks);
  if (result != CUDA_SUCCESS) {
    uses_.failures.Fatal("memory of the session could not be mapped again: error " +
                         std::to_string(result));
    return false;
  }
  if (!returned.more) back_ = 0;
  return !returned.more;
}

}  // namespace longwire::worker
