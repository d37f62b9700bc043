#include "client-shim/copy/copies_across.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "base/try.h"
#include "client-shim/context/context.h"
#include "client-shim/copy/bridges.h"
#include "client-shim/memory/pointers.h"
#include "client-shim/mirror/host_memory.h"
#include "client-shim/mirror/mirrors.h"
#include "client-shim/session/server_failure.h"
#include "client-shim/session/uploads.h"
#include "client-shim/stream/capture.h"
#include "client-shim/stream/host_writes.h"
#include "client-shim/stream/program_streams.h"
#include "client-shim/stream/waits_across.h"
#include "client-shim/support/function_ref.h"
#include "client-shim/support/never_destroyed.h"
#include "longwire/calls.h"
#include "wire/open.h"
#include "wire/switches.h"

namespace longwire::shim {
namespace {

using Clock = std::chrono::steady_clock;
using Kind = CopySide::Kind;

constexpr uint32_t kHeldBack = wire::OpenReply::kHeldBack;

// Bytes that are on their way through this process at a time.
constexpr uint64_t kAcrossPieceBytes = uint64_t{16} << 20;

// So long after an error of the source's context, which need not be the copy's, bytes may come.
constexpr std::chrono::seconds kRefusedPatience{3};

// A context of the session; nullptr if none is active.
Context* AnyContextOf(const ClientSession* session) {
  for (Context* context : LiveContexts()) {
    if (context->session == session) return context;
  }
  return nullptr;
}

// A context that has the memory, whose streams can copy it. nullptr: the program's own memory.
Context* ContextOfSide(const CopySide& side, const Stream* stream) {
  if (side.kind == Kind::kHost) return nullptr;
  if (side.kind == Kind::kArray) {
    const uint64_t number = reinterpret_cast<uint64_t>(side.array);
    const uint64_t space = (number - wire::kFirstHandle) / wire::kHandlesOfSpace;
    if (number < wire::kFirstHandle || space >= Sessions().size()) return stream->context;
    const ClientSession* session = Sessions()[space];
    return session == stream->session ? stream->context : AnyContextOf(session);
  }
  DeviceRange range;
  return FindDeviceRange(side.address, &range) ? range.context : stream->context;
}

bool IsOther(const Stream* stream, const CopySide& side) {
  const Context* context = ContextOfSide(side, stream);
  return context != nullptr && context->session != stream->session;
}

// The bytes of a piece that goes over a bridge.
struct Way {
  uint64_t transfer = 0;
  uint64_t bytes = 0;
};

// Streams of ours that wait for the next copy, as drivers take long to make one.
struct IdleStreams {
  base::Mutex mutex{base::ranks::kCopyStreams};
  std::vector<Stream*> streams LONGWIRE_GUARDED_BY(mutex);  // retained
};

IdleStreams& TheIdleStreams() {
  static NeverDestroyed<IdleStreams> idle;
  return *idle;
}

constexpr size_t kMaxIdleStreams = 16;

// Retained; nullptr: the context has none.
Stream* TakeIdleStream(const Context* context) {
  const uint32_t number = context->number.load();
  IdleStreams& idle = TheIdleStreams();
  base::MutexLock lock(idle.mutex);
  const auto found = std::ranges::find(idle.streams, number, &Stream::context_number);
  if (found == idle.streams.end()) return nullptr;
  Stream* stream = *found;
  idle.streams.erase(found);
  return stream;
}

// Those whose contexts have ended make room first.
bool KeepIdleStream(Stream* stream) {
  static const bool never = wire::IsSwitchedOff("kept-streams");
  std::vector<Stream*> ended;
  bool kept = false;
  {
    IdleStreams& idle = TheIdleStreams();
    base::MutexLock lock(idle.mutex);
    std::erase_if(idle.streams, [&](Stream* one) {
      const bool has_ended = one->destroyed.load();
      if (has_ended) ended.push_back(one);
      return has_ended;
    });
    kept = !never && idle.streams.size() < kMaxIdleStreams;
    if (kept) idle.streams.push_back(stream);
  }
  for (Stream* one : ended) Release(one);
  return kept;
}

// A stream of our own, in which nothing else is.
class CopyStream {
 public:
  explicit CopyStream(Context* context) : stream_(TakeIdleStream(context)) {
    if (stream_ != nullptr) return;
    result_ = NewStream(context, StreamKind::kNonBlocking, 0, 0, &stream_);
    if (result_ != CUDA_SUCCESS) return;
    stream_->internal = true;
    Retain(stream_);
  }
  ~CopyStream() {
    if (stream_ == nullptr || (succeeded_ && KeepIdleStream(stream_))) return;
    DestroyStream(stream_);
    Release(stream_);
  }
  CopyStream(const CopyStream&) = delete;
  CopyStream& operator=(const CopyStream&) = delete;

  // When it returns the bytes are there.
  CUresult Make(const CopySide& destination, const CopySide& source, const Extent& extent) {
    LONGWIRE_TRY(result_);
    LONGWIRE_TRY(Copy(destination, source, extent, stream_->handle, Waits::kSync));
    LONGWIRE_TRY(AwaitStream(stream_, stream_->last.load()));
    return Succeeded(TakeError(stream_->context));
  }

  // The same where both sides are of this server, on whichever devices. It waits for no other work
  // of theirs, as the copy is in the order of the program's stream already.
  CUresult MakeThere(const CopySide& destination, const CopySide& source, const Extent& extent) {
    LONGWIRE_TRY(result_);
    LONGWIRE_TRY(Copy(destination, source, extent, stream_->handle, Waits::kAsync, Peers::kYes));
    LONGWIRE_TRY(AwaitStream(stream_, stream_->last.load()));
    return Succeeded(TakeError(stream_->context));
  }

  // One of them is called for the one side of a copy over the bridge to the other session.
  CUresult Send(const CopySide& source, const Extent& extent, const Way& way,
                const ClientSession& to) {
    return Submit<calls::lwBridgeSend>(source, extent, way, to);
  }
  CUresult Receive(const CopySide& destination, const Extent& extent, const Way& way,
                   const ClientSession& from) {
    return Submit<calls::lwBridgeReceive>(destination, extent, way, from);
  }
  // The result of its copy: after success it may be used again, though it may still be busy.
  CUresult Succeeded(CUresult result) {
    succeeded_ = result == CUDA_SUCCESS;
    return result;
  }
  void AskForTheEnd() { WantProgress(stream_, stream_->last.load()); }
  bool IsDone() const {
    return stream_ != nullptr &&
           stream_->finished.load(std::memory_order_acquire) >= stream_->last.load();
  }

 private:
  template <class Call>
  CUresult Submit(const CopySide& side, const Extent& extent, const Way& way,
                  const ClientSession& other) {
    LONGWIRE_TRY(result_);
    Where where;
    LONGWIRE_TRY(OpenWhere(stream_, &where));
    Call call;
    call.place = WirePlace(side, extent);
    call.bytes = way.bytes;
    call.transfer = way.transfer;
    call.bridge = BridgeNumber(*stream_->session, other);
    DeviceWork work(stream_);
    return ClientSession::Queued(where.session->Submit(where, call));
  }

  Stream* stream_ = nullptr;
  CUresult result_ = CUDA_SUCCESS;
  bool succeeded_ = false;
};

struct Job {
  Stream* stream = nullptr;  // retained
  CopySide destination, source;
  Extent extent;
  Context* to = nullptr;
  Context* from = nullptr;
  std::vector<std::byte> staged;  // of pageable memory, as it was when the copy was called

  CUresult Make() const;
  CUresult MakeInPieces() const;
  CUresult MakeOverBridge() const;
  CUresult Announce(CopyStream& down, CopyStream& up) const;
  CUresult AnnounceInPieces(CopyStream& down, CopyStream& up, FunctionRef<bool()> failed) const;
};

CUresult Job::Make() const {
  if (to != nullptr && from != nullptr) {
    if (to->session == from->session) {
      return CopyStream(to).MakeThere(destination, source, extent);
    }
    if (!HasBridge(*from->session, *to->session)) return MakeInPieces();
    const CUresult result = MakeOverBridge();
    // Its bytes may be on their way, and would stay in the way of the next one's.
    if (result != CUDA_SUCCESS) EndBridge(*from->session, *to->session);
    return result;
  }
  return CopyStream(to != nullptr ? to : from).Make(destination, source, extent);
}

CopySide Moved(CopySide side, uint64_t x, uint64_t y, uint64_t z) {
  side.x_bytes += x;
  side.y += y;
  side.z += z;
  return side;
}

// Calls `make` for each piece of at most `most` bytes, until one is not made.
CUresult EachPiece(
    const Extent& extent, uint64_t most,
    FunctionRef<CUresult(const Extent& piece, uint64_t x, uint64_t y, uint64_t z)> make) {
  const uint64_t width = std::min(extent.width, most);
  const uint64_t rows = std::max<uint64_t>(most / width, 1);
  for (uint64_t z = 0; z < extent.slices; ++z) {
    for (uint64_t y = 0; y < extent.rows; y += rows) {
      for (uint64_t x = 0; x < extent.width; x += width) {
        const Extent piece{std::min(width, extent.width - x), std::min(rows, extent.rows - y), 1};
        LONGWIRE_TRY(make(piece, x, y, z));
      }
    }
  }
  return CUDA_SUCCESS;
}

CUresult Job::MakeInPieces() const {
  CopyStream down(from), up(to);
  std::vector<std::byte> bytes;
  return EachPiece(extent, kAcrossPieceBytes,
                   [&](const Extent& piece, uint64_t x, uint64_t y, uint64_t z) {
                     bytes.resize(piece.width * piece.rows);
                     const CopySide between = CopySide::Host(bytes.data());
                     LONGWIRE_TRY(down.Make(between, Moved(source, x, y, z), piece));
                     return up.Make(Moved(destination, x, y, z), between, piece);
                   });
}

// Its bytes wait in the bridge's lanes until the receiver has room: nothing here holds them back.
CUresult Job::Announce(CopyStream& down, CopyStream& up) const {
  const Way way{ClientSession::NewId(), extent.width * extent.rows * extent.slices};
  LONGWIRE_TRY(up.Receive(destination, extent, way, *from->session));
  return down.Send(source, extent, way, *to->session);
}

// The pieces follow each other without waiting: the receiver's window bounds what is under way.
CUresult Job::AnnounceInPieces(CopyStream& down, CopyStream& up, FunctionRef<bool()> failed) const {
  ClientSession &sender = *from->session, &receiver = *to->session;
  const uint64_t most = LargestPiece(receiver, kAcrossPieceBytes);
  return EachPiece(extent, most, [&](const Extent& piece, uint64_t x, uint64_t y, uint64_t z) {
    const uint64_t bytes = piece.width * piece.rows;
    auto fits = [&] { return FitsUploadWindow(receiver, bytes); };
    if (!AwaitOverBridge(sender, receiver, fits, failed)) return CUDA_ERROR_LAUNCH_FAILED;
    if (!WaitForUploadWindow(receiver, bytes)) return ClientSession::NotSent();
    const Way way{ClientSession::NewId(), bytes};
    LONGWIRE_TRY(up.Receive(Moved(destination, x, y, z), piece, way, sender));
    return down.Send(Moved(source, x, y, z), piece, way, receiver);
  });
}

CUresult Job::MakeOverBridge() const {
  CopyStream down(from), up(to);
  ClientSession &sender = *from->session, &receiver = *to->session;
  // What was refused at the source's server sends nothing.
  Clock::time_point refused = Clock::time_point::max();
  auto failed = [&] {
    const bool none_comes = down.IsDone() && from->once.load() != 0;
    refused = none_comes ? std::min(refused, Clock::now()) : Clock::time_point::max();
    const bool waited = none_comes && Clock::now() - refused > kRefusedPatience;
    return waited || from->sticky.load() != 0 || to->sticky.load() != 0;
  };
  const bool whole = HasWholeCopies() && receiver.opened().bridges_hold_back == kHeldBack;
  LONGWIRE_TRY(whole ? Announce(down, up) : AnnounceInPieces(down, up, failed));
  down.AskForTheEnd();
  up.AskForTheEnd();
  if (!AwaitOverBridge(
          sender, receiver, [&] { return up.IsDone(); }, failed)) {
    return CUDA_ERROR_LAUNCH_FAILED;
  }
  LONGWIRE_TRY(up.Succeeded(TakeError(to)));
  return down.Succeeded(TakeError(from));
}

void CUDA_CB MakeCopy(void* data) {
  std::unique_ptr<Job> job(static_cast<Job*>(data));
  if (job->Make() != CUDA_SUCCESS) {
    const std::string sentence =
        "a copy between servers has failed: what waits for it fails, too; start the program again";
    FailWaiting(*job->stream->session, sentence);
    if (job->to != nullptr) FailWaiting(*job->to->session, sentence);
  }
  Release(job->stream);
}

}  // namespace

bool IsAcross(const Stream* stream, const CopySide& destination, const CopySide& source) {
  return AreSeveral() && (IsOther(stream, destination) || IsOther(stream, source));
}

CUresult CopyAcross(Stream* stream, const CopySide& destination, const CopySide& source,
                    const Extent& extent, Waits waits) {
  LONGWIRE_TRY(RefuseWhileCapturing(stream));
  auto job = std::make_unique<Job>(Job{stream, destination, source, extent, nullptr, nullptr, {}});
  job->to = ContextOfSide(destination, stream);
  job->from = ContextOfSide(source, stream);
  HostPlace host;
  bool pinned = false;
  if (job->to == nullptr || job->from == nullptr) {
    host = HostSide(job->to == nullptr ? destination : source, extent);
    pinned = IsPinned(host.base, host.span());
  }
  if (job->from == nullptr && !pinned) {
    job->staged.resize(host.bytes());
    host.Gather(0, job->staged);
    job->source = CopySide::Host(job->staged.data());
  }
  Retain(stream);
  uint64_t position = 0;
  const bool between = job->to != nullptr && job->from != nullptr;
  CUresult result = RunAcross(stream, &MakeCopy, job.get(), between, &position);
  if (result != CUDA_SUCCESS) {
    Release(stream);
    return result;
  }
  job.release();
  const bool to_program = destination.kind == Kind::kHost;
  if (waits == Waits::kAsync && (!to_program || pinned)) {
    if (to_program) {
      NoteHostWrite(stream, position, reinterpret_cast<uint64_t>(host.base), host.span());
    }
    return CUDA_SUCCESS;
  }
  result = WaitForStream(stream, position);
  return result == CUDA_SUCCESS ? TakeError(stream->context) : result;
}

}  // namespace longwire::shim
