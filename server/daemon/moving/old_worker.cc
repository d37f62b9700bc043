#include "server/daemon/moving/old_worker.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include "base/cuda_codes.h"
#include "base/reason.h"
#include "link/transport/codes.h"
#include "server/protocol/message.h"

namespace longwire::daemon {
namespace {

using std::chrono::milliseconds;

// How long a program's work may take to end, all attempts together. A session that waits for its
// program's next call (a host function, an event) is let go between them.
constexpr milliseconds kQuietPatience{10'000};
constexpr milliseconds kOneHold{400};
constexpr milliseconds kBetweenHolds{30};
constexpr milliseconds kStillQuiet{100};
// From the end of its sockets to that of a process.
constexpr milliseconds kLastMoment{1'000};

// Until a worker that was let go answers, or one that has its notice has ended.
constexpr milliseconds kSettlePatience{20'000};
constexpr milliseconds kSettleLook{20};

}  // namespace

bool MakePair(int type, Pair* pair) {
  int both[2] = {-1, -1};
  if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, both) != 0) return false;
  pair->ours = wire::Descriptor(both[0]);
  pair->theirs = wire::Descriptor(both[1]);
  return true;
}

int32_t HearWorker(int socket, milliseconds patience, std::string* sentence, uint64_t* calls) {
  bool closed = false;
  auto said = wire::ReceiveMessage(socket, patience, &closed);
  moving::MoveAnswer answer;
  if (!said || message::Unpack(said->bytes, &answer) != wire::WireResult::kOk) {
    *sentence = closed ? "a worker ended meanwhile" : "a worker did not answer in time";
    return -1;
  }
  if (!answer.sentence.empty()) *sentence = answer.sentence;
  if (calls != nullptr) *calls = answer.calls.value_or(0);
  return answer.code;
}

std::string MillisText(Clock::duration time) {
  return std::to_string(std::chrono::duration_cast<milliseconds>(time).count()) + " ms";
}

std::string BoundToItsPlace(const ClientDescription& client, const config::Config& config) {
  if (client.local()) {
    return "its program is on this host and uses the worker's rings itself (unix:)";
  }
  if (client.alone) return "its program has places at several hosts, with their devices to itself";
  if (config.resume_grace() == 0) return "resume_grace is 0: no client comes back after a pause";
  return "";
}

uint64_t TimeLeft(const ServerSession& session) {
  const std::chrono::seconds limit(session.client().time_limit);
  if (limit.count() == 0) return 0;
  const auto left =
      std::chrono::ceil<std::chrono::seconds>(limit - (Clock::now() - session.opened()));
  return static_cast<uint64_t>(std::max<int64_t>(left.count(), 1));
}

bool OldWorker::GoesOn(const std::shared_ptr<ServerSession>& session) {
  const auto deadline = Clock::now() + kSettlePatience;
  while (Clock::now() < deadline) {
    if (session->WorkerEnds(kSettleLook)) return false;
    OldWorker worker(session);
    Pair stream;
    std::string sentence;
    if (!MakePair(SOCK_STREAM, &stream)) continue;
    if (worker.Ask(std::move(stream.theirs), &sentence) || worker.answered()) return true;
  }
  return !session->WorkerEnds(milliseconds(0));
}

OldWorker::~OldWorker() {
  packets_ = {};  // it goes on
  if (!ended_) session_->Resume();
}

bool OldWorker::Ask(wire::Descriptor stream, std::string* sentence) {
  Pair packets;
  if (!MakePair(SOCK_SEQPACKET, &packets)) {
    *sentence = "longwired has no sockets left: " + base::Reason(errno);
    return false;
  }
  packets_ = std::move(packets.ours);
  const int given[] = {packets.theirs.get(), stream.get()};
  wire::Descriptor control = session_->ControlSocket();
  bool told = wire::SendMessage(control.get(),
                                message::Pack(moving::MoveOut{moving::kVersion, true}), given);
  packets.theirs = {};
  stream = {};
  auto said = wire::ReceiveMessage(packets_.get(), kAnswerPatience);
  if (!told || !said || message::Unpack(said->bytes, &offer_) != wire::WireResult::kOk) {
    *sentence = session_->WorkerEnds(kLastMoment)
                    ? "it ended meanwhile"
                    : "its worker does not answer; it may be of an older version";
    return false;
  }
  answered_ = true;
  *sentence = offer_.sentence;
  return offer_.code == 0;
}

bool OldWorker::Hold(std::string* sentence) {
  const auto deadline = Clock::now() + kQuietPatience;
  for (uint32_t patience = kOneHold.count(); Clock::now() < deadline;) {
    int32_t code = HoldFor(patience, sentence);
    if (code == 0) {
      bool alone = session_->Pause();
      // Bytes may have come before the connections were broken.
      code = alone ? HoldFor(static_cast<uint32_t>(kStillQuiet.count()), sentence) : 1;
      if (code == 0) return true;
      session_->Resume();
    }
    if (code != static_cast<int32_t>(transport::kNotReady) && code != 1) return false;
    if (!LetGo(sentence)) return false;
    std::this_thread::sleep_for(kBetweenHolds);
  }
  *sentence = "busy: it was never without work between two calls for " +
              std::to_string(kQuietPatience.count() / 1000) + " s; try again later";
  return false;
}

int32_t OldWorker::HoldFor(uint32_t patience, std::string* sentence) {
  if (!wire::SendMessage(packets_.get(), message::Pack(moving::MoveHold{patience}))) return -1;
  return HearWorker(packets_.get(), milliseconds(patience) + kAnswerPatience, sentence);
}

bool OldWorker::LetGo(std::string* sentence) {
  if (!wire::SendMessage(packets_.get(), message::Pack(moving::MoveHold{0, true}))) return false;
  return HearWorker(packets_.get(), kAnswerPatience, sentence) == 0;
}

bool OldWorker::Write() {
  return wire::SendMessage(packets_.get(), message::Pack(moving::MoveWrite{}));
}

bool OldWorker::HasWritten(std::string* sentence) {
  return HearWorker(packets_.get(), kAnswerPatience, sentence, &calls_.still) == 0;
}

bool OldWorker::WriteAhead() {
  return wire::SendMessage(packets_.get(), message::Pack(moving::MoveAhead{}));
}

Round OldWorker::HasWrittenAhead(std::string* sentence) {
  uint64_t calls = 0;
  const int32_t code = HearWorker(packets_.get(), kCopyPatience, sentence, &calls);
  if (code == static_cast<int32_t>(transport::kNotReady)) return Round::kNotNow;
  // Or it has ended: what the new one says then, of half a round, is no reason.
  if (code == base::kNotPermitted || code == -1) return Round::kRefused;
  calls_.before += calls;
  return code == 0 ? Round::kDone : Round::kFailed;
}

void OldWorker::Tell() {
  ended_ = true;
  (void)wire::SendMessage(packets_.get(), message::Pack(moving::MoveEnd{}));
}

}  // namespace longwire::daemon
