#include "client-shim/copy/copies_across.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "base/try.h"
#include "client-shim/context/context.h"
#include "client-shim/memory/pointers.h"
#include "client-shim/mirror/host_memory.h"
#include "client-shim/session/server_failure.h"
#include "client-shim/stream/capture.h"
#include "client-shim/stream/host_writes.h"
#include "client-shim/stream/program_streams.h"
#include "client-shim/stream/waits_across.h"
#include "wire/open.h"

namespace longwire::shim {
namespace {

using Kind = CopySide::Kind;

// Bytes that are on their way through this process at a time.
constexpr uint64_t kAcrossPieceBytes = uint64_t{16} << 20;

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

// A stream of our own, in which nothing else is.
class CopyStream {
 public:
  explicit CopyStream(Context* context) {
    result_ = NewStream(context, StreamKind::kNonBlocking, 0, 0, &stream_);
    if (result_ == CUDA_SUCCESS) stream_->internal = true;
  }
  ~CopyStream() {
    if (stream_ != nullptr) DestroyStream(stream_);
  }
  CopyStream(const CopyStream&) = delete;
  CopyStream& operator=(const CopyStream&) = delete;

  // When it returns the bytes are there.
  CUresult Make(const CopySide& destination, const CopySide& source, const Extent& extent) {
    LONGWIRE_TRY(result_);
    LONGWIRE_TRY(Copy(destination, source, extent, stream_->handle, Waits::kSync));
    LONGWIRE_TRY(AwaitStream(stream_, stream_->last.load()));
    return TakeError(stream_->context);
  }

 private:
  Stream* stream_ = nullptr;
  CUresult result_ = CUDA_SUCCESS;
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
};

CUresult Job::Make() const {
  if (to != nullptr && from != nullptr) return MakeInPieces();
  return CopyStream(to != nullptr ? to : from).Make(destination, source, extent);
}

CopySide Moved(CopySide side, uint64_t x, uint64_t y, uint64_t z) {
  side.x_bytes += x;
  side.y += y;
  side.z += z;
  return side;
}

CUresult Job::MakeInPieces() const {
  CopyStream down(from), up(to);
  const uint64_t width = std::min(extent.width, kAcrossPieceBytes);
  const uint64_t rows = std::max<uint64_t>(kAcrossPieceBytes / width, 1);
  std::vector<std::byte> bytes;
  for (uint64_t z = 0; z < extent.slices; ++z) {
    for (uint64_t y = 0; y < extent.rows; y += rows) {
      for (uint64_t x = 0; x < extent.width; x += width) {
        const Extent piece{std::min(width, extent.width - x), std::min(rows, extent.rows - y), 1};
        bytes.resize(piece.width * piece.rows);
        const CopySide between = CopySide::Host(bytes.data());
        LONGWIRE_TRY(down.Make(between, Moved(source, x, y, z), piece));
        LONGWIRE_TRY(up.Make(Moved(destination, x, y, z), between, piece));
      }
    }
  }
  return CUDA_SUCCESS;
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

// As cuMemcpyPeer has it: behind what both contexts' devices were given.
CUresult AwaitPeers(const Job& job) {
  for (const Context* side : {job.to, job.from}) {
    if (side == nullptr) continue;
    for (Context* context : LiveContexts()) {
      if (context->device == side->device) LONGWIRE_TRY(AwaitWork(UnfinishedWork(context)));
    }
  }
  return CUDA_SUCCESS;
}

}  // namespace

bool IsAcross(const Stream* stream, const CopySide& destination, const CopySide& source) {
  return AreSeveral() && (IsOther(stream, destination) || IsOther(stream, source));
}

CUresult CopyAcross(Stream* stream, const CopySide& destination, const CopySide& source,
                    const Extent& extent, Waits waits, Peers peers) {
  LONGWIRE_TRY(RefuseWhileCapturing(stream));
  auto job = std::make_unique<Job>(Job{stream, destination, source, extent, nullptr, nullptr, {}});
  job->to = ContextOfSide(destination, stream);
  job->from = ContextOfSide(source, stream);
  if (peers == Peers::kYes && waits == Waits::kSync) LONGWIRE_TRY(AwaitPeers(*job));
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
  CUresult result = RunAcross(stream, &MakeCopy, job.get(), &position);
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
