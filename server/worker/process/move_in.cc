#include "server/worker/process/move_in.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "server/protocol/moving.h"
#include "server/worker/issue/executor.h"
#include "server/worker/process/contents_in.h"
#include "server/worker/process/move_out.h"
#include "server/worker/process/session.h"
#include "server/worker/process/snapshot.h"
#include "server/worker/support/log_line.h"
#include "wire/record.h"

namespace longwire::worker {
namespace {

// Of a call that waits for another thread of the worker.
constexpr std::chrono::seconds kRepeatPatience{60};
constexpr std::chrono::milliseconds kRepeatLook{1};

std::string Failed(const char* what, CUresult result) {
  return std::string(what) + " (error " + std::to_string(result) + ")";
}

class Rebuilding {
 public:
  // `packets`: where the rounds are answered.
  Rebuilding(WorkerSession& session, const wire::OpenReply& reply, MovePieces& pieces, int packets,
             int stream)
      : session_(session),
        reply_(reply),
        packets_(packets),
        from_(stream),
        contents_(session, from_, pieces, stream) {}

  // Empty once the session is what the old worker's was.
  std::string Run() {
    session_.down().Mute();
    std::vector<std::byte> head;
    if (!from_.ReadHead(&head)) return kBrokenStream;
    std::string problem = TakeState(head);
    bool placed = false;
    while (problem.empty()) {
      if (!from_.ReadHead(&head)) return kBrokenStream;
      SnapshotEnd end;
      bool of_calls = !placed;
      if (of_calls) problem = TakeCall(head, &of_calls);
      if (of_calls) continue;
      if (!placed) problem = Place();
      placed = true;
      if (!problem.empty()) break;
      if (message::Unpack(head, &end) == wire::WireResult::kOk) {
        return end.frames == from_.frames() && contents_.IsWhole() ? "" : kBrokenStream;
      }
      problem = TakeContents(head);
    }
    return problem;
  }

 private:
  // *is_one: it belongs to the calls, which run again.
  std::string TakeCall(const std::vector<std::byte>& head, bool* is_one) {
    EntryHead entry;
    SnapshotPause pause;
    if (message::Unpack(head, &entry) == wire::WireResult::kOk) return Replay(entry);
    if (message::KindOf(head) == CarriedState::kKind) return TakeState(head);
    *is_one = message::Unpack(head, &pause) == wire::WireResult::kOk;
    if (!*is_one) return "";
    const moving::MoveAnswer answer{CUDA_SUCCESS, "", std::exchange(replayed_, 0)};
    const bool told = wire::SendMessage(packets_, message::Pack(answer));
    return told ? "" : "nobody waits for it any more";
  }

  std::string TakeContents(const std::vector<std::byte>& head) {
    Contents contents;
    Part part;
    SharedPiece shared;
    SharedChunk chunk;
    if (message::Unpack(head, &contents) == wire::WireResult::kOk) return contents_.Find(contents);
    if (message::Unpack(head, &part) == wire::WireResult::kOk) return contents_.Take(part);
    if (message::Unpack(head, &shared) == wire::WireResult::kOk) return contents_.Take(shared);
    if (message::Unpack(head, &chunk) == wire::WireResult::kOk) {
      return contents_.Take(chunk, from_.TakeFile());
    }
    return kBrokenStream;
  }

  // Before the calls: the driver looks at the memory that a graph's nodes are to use.
  std::string TakeState(const std::vector<std::byte>& head) {
    state_ = {};
    if (message::Unpack(head, &state_) != wire::WireResult::kOk ||
        state_.version != moving::kVersion) {
      return "the old worker writes another version";
    }
    if (state_.opening == Comparable(reply_)) return PlaceMemory();
    return "the device, its driver or its address range is of another kind" + Differing();
  }

  // Which of it, for people. Both without what names the place, as they are compared.
  std::string Differing() const {
    wire::OpenReply old, own;
    wire::Reader reader(std::as_bytes(std::span(state_.opening)));
    const auto comparable = Comparable(reply_);
    wire::Reader own_reader(std::as_bytes(std::span(comparable)));
    if (old.Decode(reader) != wire::WireResult::kOk || old.devices.size() != 1 ||
        own.Decode(own_reader) != wire::WireResult::kOk || own.devices.size() != 1) {
      return "";
    }
    const wire::DeviceDescription& there = old.devices.front();
    const wire::DeviceDescription& here = own.devices.front();
    if (there.window.base != here.window.base || there.window.bytes != here.window.bytes) {
      return ": its addresses are taken there";
    }
    if (there.total_memory != here.total_memory) return ": it has another amount of memory";
    std::string all;
    for (size_t i = 0; i < std::min(there.attributes.size(), here.attributes.size()); ++i) {
      const wire::DeviceAttribute &one = there.attributes[i], &other = here.attributes[i];
      if (one.code == other.code && one.value == other.value) continue;
      all += (all.empty() ? ": attribute " : ", attribute ") + std::to_string(one.attribute) +
             " is " + std::to_string(other.value) + ", not " + std::to_string(one.value);
    }
    if (!all.empty()) return all;
    if (old.lanes != own.lanes) return ": it has another number of lanes";
    return old.protocol == own.protocol ? ": other limits" : ": another protocol";
  }

  std::string Replay(const EntryHead& head) {
    Journal::Entry entry;
    entry.call.position = head.position;
    entry.call.call = static_cast<CallId>(head.call);
    entry.call.flags = head.flags;
    entry.call.thread = head.thread;
    entry.call.context = head.context;
    entry.call.stream = head.stream;
    entry.result = head.result;
    entry.knowledge = head.knowledge;
    if (std::max({head.arguments, head.reply, head.image}) > Journal::kMaxBytes)
      return kBrokenStream;
    entry.call.arguments.resize(head.arguments);
    entry.reply.resize(head.reply);
    std::vector<std::byte> image(head.image);
    if (!from_.ReadBytes(entry.call.arguments) || !from_.ReadBytes(entry.reply) ||
        !from_.ReadBytes(image) || !Journal::Keeps(entry.call)) {
      return kBrokenStream;
    }
    if (!image.empty()) {
      entry.image = std::make_shared<const std::vector<std::byte>>(std::move(image));
    }
    ++replayed_;
    session_.journal().Expect(entry);
    session_.journal().Read(entry.call);
    if (Repeat(entry.call) == kNotYet) {
      return std::string(CallName(entry.call.call)) + " cannot be repeated at once";
    }
    std::string difference = session_.journal().Difference();
    return difference.empty() ? session_.journal().Unmovable() : difference;
  }

  // What goes into a graph stands in its stream, as its capture needs it.
  CUresult Repeat(QueuedCall& call) {
    if (call.stream == 0) return Executor(session_).Execute(call, nullptr);
    auto stream = session_.streams.Find(call.stream);
    if (stream == nullptr) {
      Executor(session_).Refuse(call, CUDA_ERROR_INVALID_HANDLE);
      return CUDA_SUCCESS;
    }
    // A function is loaded by another thread when it is launched first.
    const auto deadline = std::chrono::steady_clock::now() + kRepeatPatience;
    while (true) {
      session_.SetContext(*stream->context);
      {
        base::MutexLock lock(stream->issue_mutex);
        stream->capturing = (call.flags & wire::kCapturing) != 0;
        if (Executor(session_).Execute(call, stream) != kNotYet) return CUDA_SUCCESS;
      }
      if (std::chrono::steady_clock::now() > deadline) return kNotYet;
      std::this_thread::sleep_for(kRepeatLook);
    }
  }

  std::string PlaceMemory() {
    session_.SetPrimaryContext(session_.devices().front());
    std::string why;
    CUresult result = session_.memory().Restore(state_.memory, &why);
    if (result == CUDA_SUCCESS) return "";
    return Failed("its memory does not fit there", result) + ": " + why;
  }

  // What is not in the journal.
  std::string Place() {
    if (session_.next_worker_handle != state_.next_handle) return "its handles have other numbers";
    if (session_.streams.size() != state_.streams.size()) return "it has other streams";
    for (const CarriedStream& one : state_.streams) {
      auto stream = session_.streams.Find(one.stream);
      if (stream == nullptr) return "it has other streams";
      session_.timelines().RestoreSettled(*stream, one.settled);
      base::MutexLock lock(stream->issue_mutex);
      stream->last_issued = one.last_issued;
      stream->capturing = false;
    }
    session_.SetPrimaryContext(session_.devices().front());
    CUresult result = CUDA_SUCCESS;
    for (const CarriedMirror& one : state_.mirrors) {
      result = session_.mirrors().Add(one.mirror, one.address, one.bytes);
      if (result != CUDA_SUCCESS) return Failed("its shared memory does not fit there", result);
    }
    result = session_.events().Restore(
        state_.events, state_.moment, session_.contexts,
        [this](const Context& context) { return session_.SetContext(context); });
    session_.SetPrimaryContext(session_.devices().front());
    return result == CUDA_SUCCESS ? "" : Failed("its events cannot be made again", result);
  }

  WorkerSession& session_;
  const wire::OpenReply& reply_;
  const int packets_;
  uint64_t replayed_ = 0;  // calls, of this round
  SnapshotReader from_;
  CarriedState state_;
  ContentsIn contents_;
};

}  // namespace

void MoveIn(WorkerSession& session, const wire::OpenReply& reply,
            std::unique_ptr<MovePieces> pieces, wire::Descriptor packets, wire::Descriptor stream) {
  std::string problem = Rebuilding(session, reply, *pieces, packets.get(), stream.get()).Run();
  pieces.reset();
  stream = {};
  if (!problem.empty()) LogLine("a session did not move here: %s", problem.c_str());
  moving::MoveAnswer answer{problem.empty() ? CUDA_SUCCESS : CUDA_ERROR_NOT_PERMITTED, problem, {}};
  bool told = wire::SendMessage(packets.get(), message::Pack(answer));
  auto said = wire::ReceiveMessage(packets.get(), std::chrono::milliseconds(-1));
  moving::MoveGo go;
  if (!told || !problem.empty() || !said ||
      message::Unpack(said->bytes, &go) != wire::WireResult::kOk) {
    _exit(0);
  }
  session.ReopenRings();
}

}  // namespace longwire::worker
