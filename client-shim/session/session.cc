#include "client-shim/session/session.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <thread>

#include "client-shim/connect/options.h"
#include "client-shim/entry/error_log.h"
#include "client-shim/session/process_state.h"
#include "client-shim/support/never_destroyed.h"
#include "client-shim/support/threads.h"
#include "client-shim/tracing/recorder.h"
#include "longwire/calls.h"
#include "longwire/printer.h"

namespace longwire::shim {
namespace {

using Clock = std::chrono::steady_clock;

// One round trip of this number is measured, for servers of this version of the protocol and newer.
constexpr uint64_t kMeasuredTrips = 16;
constexpr uint32_t kMeasuresTrips = 14;

std::vector<ClientSession*>& TheSessions() {  // written before cuInit returns
  static NeverDestroyed<std::vector<ClientSession*>> sessions;
  return *sessions;
}

}  // namespace

ClientSession::ClientSession(SessionParts parts)
    : up_(parts.up),
      up_memory_(up_.memory()),
      down_memory_(parts.down),
      down_(parts.down),
      spin_(wire::AllowedCores()),
      socket_(std::move(parts.socket)),
      renewal_(std::move(parts.renewal)),
      opened_(std::move(parts.reply)),
      server_(parts.server),
      name_(std::move(parts.name)) {}

bool ClientSession::Start() {
  bool started = StartThread(
      "longwire-recv", [](void* self) { static_cast<ClientSession*>(self)->ReceiverLoop(); }, this);
  if (started && socket_.valid()) {
    // When nothing more comes the pump reads what is left, then it ends the session.
    started =
        watch_.Start(std::move(socket_), std::move(renewal_), [this] { down_.memory().Close(0); });
  }
  return started;
}

uint64_t ClientSession::Put(const Header& of, size_t bound, Encode encode, PendingReply* reply) {
  constexpr size_t kHeader = sizeof(wire::RecordHeader);
  const Where& where = of.where;
  while (ended() == CUDA_SUCCESS) {
    bound = std::min(bound, wire::kMaxRecordBytes - kHeader);
    size_t room = wire::AlignRecord(kHeader + bound);
    std::byte* to = up_.Reserve(room);
    if (to == nullptr) {
      up_.WaitForSpace(room, Clock::now() + std::chrono::seconds(1));
      continue;
    }
    wire::Writer writer(std::span(to + kHeader, room - kHeader));
    encode(writer);
    if (writer.overflowed()) {
      if (bound == wire::kMaxRecordBytes - kHeader) break;  // cannot be sent at all
      bound *= 4;
      continue;
    }
    wire::RecordHeader header{};
    header.bytes = static_cast<uint32_t>(kHeader + writer.size());
    header.call = of.call;
    header.flags = where.flags;
    header.thread = of.thread;
    header.context = where.context;
    header.stream = where.stream != nullptr ? where.stream->id : 0;
    std::memcpy(to, &header, kHeader);
    uint64_t position = up_.written();
    if (where.stream != nullptr && (where.flags & wire::kCapturing) == 0) {
      bool ends = EndsByItself(static_cast<CallId>(of.call));
      if (ends && where.stream->Unheld()) where.stream->unheld.store(position);
      where.stream->last.store(position);
      where.stream->room.Take(position, wire::AlignRecord(header.bytes), opened_.stream_share);
    }
    newest_.store(position, std::memory_order_release);
    if (IsWork(of.call)) newest_work_.store(position, std::memory_order_release);
    if (reply != nullptr) {
      base::MutexLock state(state_mutex_);
      replies_[position] = reply;
    }
    if (calls_are_traced.load(std::memory_order_relaxed)) {
      Trace(of, header.stream, TracePosition(server_, position), writer.span());
    }
    counts_.calls.fetch_add(1, std::memory_order_relaxed);
    up_.Commit(wire::AlignRecord(header.bytes));
    return position;
  }
  return kNoPosition;
}

void ClientSession::Trace(const Header& of, uint64_t stream, uint64_t position,
                          std::span<const std::byte> arguments) {
  auto id = static_cast<CallId>(of.call);
  if (ProcessOptions().trace_calls) {
    Say("[%u]   queued in stream %#lx: %s", of.thread, stream,
        PrintCall(id, wire::Reader(arguments)).c_str());
  }
  bool of_traces =
      id == CallId::lwSpansRead || id == CallId::lwSpansMeasure || id == CallId::lwRoundTrip;
  if (!IsRecording() || of_traces || CarriesBulkBytes(id)) return;
  ThreadState& thread = ThisThread();
  if (IsGated(id)) thread.work_sent = position;
  TheRecorder().Sent({id, thread.number, TraceNow(), position});
}

void ClientSession::PutRoundTrip() {
  calls::lwRoundTrip measured;
  measured.nanoseconds = round_trip_.exchange(0);
  Put(
      {{}, static_cast<uint16_t>(CallId::lwRoundTrip), ThisThread().number},
      measured.EncodedBytes(), [&](wire::Writer& writer) { measured.Encode(writer); }, nullptr);
  counts_.calls.fetch_sub(1, std::memory_order_relaxed);  // it is none of the program's
}

uint64_t ClientSession::AppendRecord(const Where& where, uint16_t call, size_t bound, Encode encode,
                                     PendingReply* reply, uint64_t behind) {
  // Senders of bytes may hold what before_work takes.
  bool work = IsWork(call);
  if (work && !CarriesBulkBytes(static_cast<CallId>(call))) CallBeforeWork(where.stream);
  uint32_t thread = ThisThread().number;
  base::MutexLock lock(log_mutex_);
  if (behind != kBehindAny && where.stream->last.load() != behind) return kNoPosition;
  Stream* deferred = work ? PutDeferred() : nullptr;
  if (__builtin_expect(round_trip_.load(std::memory_order_relaxed) != 0, 0)) PutRoundTrip();
  uint64_t position = Put({where, call, thread}, bound, encode, reply);
  lock.Unlock();
  AskForDeferred(deferred);
  if (position != kNoPosition) {
    if (where.stream != nullptr) AskForWaiters(where.stream);
    return position;
  }
  if (reply != nullptr && reply->then) {
    reply->then(NotQueued(), {});
    delete reply;
  }
  return kNoPosition;
}

CUresult ClientSession::AskAndWait(const Where& where, uint16_t call, size_t bound, Encode encode,
                                   std::vector<std::byte>* payload) {
  const bool of_exec = ChangesExec(static_cast<CallId>(call));
  if (!of_exec && Rebuilds(static_cast<CallId>(call))) NoteChange();
  if (!of_exec || ahead_by_ != ThisThread().number) AwaitAnswers();
  PendingReply reply;
  reply.payload = payload;
  const auto began = Clock::now();
  uint64_t position = AppendRecord(where, call, bound, encode, &reply, kBehindAny);
  if (position == kNoPosition) return NotQueued();
  const uint64_t trips = counts_.round_trips.fetch_add(1, std::memory_order_relaxed) + 1;
  if (call < wire::kCallNumbers) {
    counts_.round_trips_of[call].fetch_add(1, std::memory_order_relaxed);
  }
  bool done = WaitUntil([&] { return reply.done; });
  if (!done) {
    base::MutexLock state(state_mutex_);
    replies_.erase(position);
    return ended();
  }
  if (trips % kMeasuredTrips == 0 && opened_.protocol >= kMeasuresTrips) {
    std::chrono::nanoseconds took = Clock::now() - began;
    round_trip_.store(std::max<uint64_t>(static_cast<uint64_t>(took.count()), 1));
  }
  return reply.code;
}

CUresult ClientSession::BadReply() { return Distrust("sent an answer that cannot be read"); }

CUresult ClientSession::Distrust(const std::string& what) {
  End(CUDA_ERROR_LAUNCH_FAILED, "the session ends, because the server " + what);
  return ended();
}

void ClientSession::AddStream(Stream* stream) {
  Retain(stream);
  base::MutexLock state(state_mutex_);
  streams_[stream->id] = stream;
}

Stream* ClientSession::FindStreamById(uint64_t id) {
  base::MutexLock state(state_mutex_);
  auto found = streams_.find(id);
  return found == streams_.end() ? nullptr : found->second;
}

void ClientSession::ForgetStream(Stream* stream) {
  bool idle;
  {
    base::MutexLock state(state_mutex_);
    stream->destroyed.store(true);
    idle = stream->Idle() && streams_.erase(stream->id) != 0;
  }
  if (idle) Release(stream);
}

void ClientSession::End(CUresult code, const std::string& sentence) {
  if (code == CUDA_SUCCESS) code = CUDA_ERROR_LAUNCH_FAILED;  // an end is never a success
  transfers_.EndUploads();                                    // before any call tells the program
  if (ending_.exchange(true)) {
    // Whoever comes second finds it ended, too, even if nobody reads what the first one writes.
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
    while (ended_.load() == 0 && std::chrono::steady_clock::now() < until) {
      std::this_thread::yield();
    }
    int none = 0;
    ended_.compare_exchange_strong(none, code);
    return;
  }
  // First: a program may exit with the first call that fails.
  Say("%s%s%s", name_.c_str(), name_.empty() ? "" : ": ", sentence.c_str());
  ended_.store(code);
  any_ended_.store(true);
  const bool last = std::ranges::all_of(
      Sessions(), [](const ClientSession* one) { return one->ended() != CUDA_SUCCESS; });
  if (last) {
    session_over.store(code);
    special_calls.fetch_add(1);  // for good: every call looks
  }
  down_.memory().Close(0);
  up_memory_.Close(0);
  std::vector<PendingReply*> orphans;
  {
    base::MutexLock state(state_mutex_);
    for (auto& [position, reply] : replies_) {
      if (reply->then) orphans.push_back(reply);
    }
    replies_.clear();
  }
  for (PendingReply* reply : orphans) {
    reply->then(code, {});
    delete reply;
  }
  if (at_end_ != nullptr) at_end_(*this, code, last);
  state_changed_.NotifyAll();
  receiver_wake_.NotifyAll();
}

void ClientSession::SayWhyEnded() {
  if (!down_.memory().closed() && !up_memory_.closed()) return;
  constexpr std::chrono::milliseconds kPatience{300};  // the link's words may come after its end
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (ended_.load() == 0 && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void ClientSession::WakeWaiters() {
  base::MutexLock state(state_mutex_);
  state_changed_.NotifyAll();
}

void ClientSession::FlushText() {
  std::string text;
  bool more = false;
  {
    base::MutexLock state(state_mutex_);
    text.swap(text_);
    more = !error_text_.empty();
  }
  if (!text.empty()) {
    fwrite(text.data(), 1, text.size(), stdout);
    fflush(stdout);
  }
  if (more) FlushErrorText();
}

void ClientSession::FlushErrorText() {
  std::string text;
  {
    base::MutexLock state(state_mutex_);
    text.swap(error_text_);
  }
  size_t done = 0;
  while (done < text.size()) {
    ssize_t written = write(STDERR_FILENO, text.data() + done, text.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    done += static_cast<size_t>(written);
  }
}

std::span<ClientSession* const> Sessions() { return TheSessions(); }

ClientSession& TheSession() { return *TheSessions().front(); }

void AdoptSession(ClientSession* session) {
  TheSessions().push_back(session);
  are_several = TheSessions().size() > 1;
}

void DropSession(ClientSession* session) {
  std::erase(TheSessions(), session);
  are_several = TheSessions().size() > 1;
}

CUresult RefuseIfSeveral(const char* what) {
  if (!AreSeveral()) return CUDA_SUCCESS;
  LogError(std::string(what) + " is not possible in a program with devices of several servers: " +
           "see docs/several-hosts.md for what is");
  return CUDA_ERROR_NOT_SUPPORTED;
}

void FlushAllText() {
  for (ClientSession* session : Sessions()) session->FlushText();
}

}  // namespace longwire::shim
