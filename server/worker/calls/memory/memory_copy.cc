// Copies and memsets.
#include <algorithm>
#include <cstring>

#include "base/try.h"
#include "longwire/worker_hand_written.h"
#include "server/worker/calls/call_context.h"
#include "server/worker/calls/memory/memory_pieces.h"
#include "server/worker/code/function_rules.h"
#include "server/worker/code/images.h"
#include "server/worker/transfer/copies.h"

namespace longwire::worker {
namespace {

using Clock = BridgeFigures::Clock;

// Parts of a copy to the client that one stream has under way: one that the device writes, one that
// waits, one that is being sent.
constexpr uint32_t kPartsPerLane = 3;

// How many calls behind a copy are searched for further copies.
constexpr size_t kMaxReachedAhead = 64;

// Of a place on another device than the stream's. Peer copies cannot be captured: there the memory
// has to be accessible, as the client has made sure.
CUcontext PeerOf(CallContext& context, const calls::Place& place) {
  if (place.array != 0 || context.capturing()) return nullptr;
  WorkerSession& session = context.session();
  int32_t device = session.memory().DeviceOf(place.address);
  if (device < 0 || device == context.stream()->context->device) return nullptr;
  return session.devices()[static_cast<size_t>(device)].primary;
}

CopyStream StreamOf(CallContext& context) {
  return {context.stream()->handle, context.stream()->context->handle};
}

// The bytes from the first to the last one that a side in linear memory touches.
uint64_t Extent(const CopyPlace& place) {
  const uint64_t rows = place.rows - 1, slices = place.slices - 1;
  return place.x_bytes + place.width_bytes + (place.y + rows) * place.pitch +
         (place.z + slices) * place.pitch * place.height;
}

// By a rule that checks copies; the call is then refused with a sentence.
bool IsWrong(CallContext& context, const CopyPlace& place) {
  if (place.bytes() == 0 || !rules::ValidatesCopies(*context.session().rules().Get())) return false;
  const std::string what = std::string("a copy (") + CallName(context.call().call) + ")";
  std::string wrong = WrongRange(context.session().memory(), what, place.address, Extent(place));
  if (!wrong.empty()) context.Refuse(CUDA_ERROR_INVALID_VALUE, wrong);
  return !wrong.empty();
}

CUresult Resolve(CallContext& context, const calls::Place& place, uint64_t bytes, CopyPlace* made) {
  CUarray array = nullptr;
  if (place.array != 0 && !context.session().foreign().Find(place.array, &array)) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  if (!MakePlace(place, array, bytes, made)) return CUDA_ERROR_INVALID_VALUE;
  if (context.session().rules().any() && place.array == 0 && IsWrong(context, *made)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  made->peer = PeerOf(context, place);
  return CUDA_SUCCESS;
}

// Copies what lies in the block to `place` at `offset`; the block is free again after that.
// `given`: when it was given to the device, if it came over a bridge.
CUresult CopyStaged(CallContext& context, const CopyPlace& place, uint64_t offset, size_t bytes,
                    const StagingBlock& block, Clock::time_point given = {}) {
  const auto& stream = context.stream();
  CUresult result = CopyPacked(context.driver(), StreamOf(context), place, offset, bytes,
                               block.data, CopyDirection::kToDevice);
  stream->actions.push_back(
      [&session = context.session(), owner = stream.get(), block, given](bool) {
        if (given != Clock::time_point{}) {
          session.bridge_figures().Add(BridgeFigures::kWrite, Clock::now() - given);
        }
        session.staging().ReleaseBlock(owner, block);
      });
  return result;
}

// Copies `bytes` through staging to `place` at `offset`.
CUresult Upload(CallContext& context, const CopyPlace& place, uint64_t offset,
                std::span<const std::byte> bytes) {
  StagingBlock block;
  if (!context.session().staging().Acquire(*context.stream(), bytes.size(), &block)) return kNotYet;
  std::memcpy(block.data, bytes.data(), bytes.size());
  return CopyStaged(context, place, offset, bytes.size(), block);
}

// Brings a piece, or what is left of it, to its place. kNotYet: no staging is free for the rest.
CUresult IssuePiece(CallContext& context, const CopyPlace& place, Transfers::Piece& piece) {
  Clock::time_point given{};
  if (piece.stored != given && piece.done == 0) {
    given = Clock::now();
    context.session().bridge_figures().Add(BridgeFigures::kIssue, given - piece.stored);
  }
  if (piece.pinned.data != nullptr) {
    piece.done = piece.size;
    return CopyStaged(context, place, piece.offset, piece.size, piece.pinned, given);
  }
  // Pieces larger than a block go in parts.
  while (piece.done < piece.size) {
    size_t part = std::min<size_t>(piece.size - piece.done, Staging::kMaxBlockBytes);
    LONGWIRE_TRY(Upload(context, place, piece.offset + piece.done,
                        std::span(piece.bytes).subspan(piece.done, part)));
    piece.done += part;
  }
  return CUDA_SUCCESS;
}

// Steps of a copy whose bytes count as they are when its stream gets there.
constexpr uint64_t kNotBegun = 0, kReachedAhead = 1, kBegun = 2;

// The stream got to such a copy: what the client keeps is asked for.
void Reach(WorkerSession& session, uint64_t transfer, bool pull) {
  if (pull || session.transfers().Settle(transfer)) session.down().Pull(transfer);
}

// All before the queue's head has finished, so the copies right behind it are reached, too: a row
// of them takes one round trip.
void ReachBehind(WorkerSession& session, Stream& stream, uint64_t bytes) {
  const uint64_t most = session.transfers().limits().window / 2;
  const uint64_t turn = session.issuer().OthersTurn(stream);
  for (size_t i = 1; i < std::min(stream.queue.size(), kMaxReachedAhead + 1); ++i) {
    QueuedCall& next = stream.queue[i];
    if (!PullsMayPass(next.call) || next.position > turn) return;
    if ((next.flags & wire::kCapturing) != 0) return;
    if (next.call != CallId::lwCopyToDevice || next.begun()) continue;
    calls::lwCopyToDevice copy;
    wire::Reader reader(next.arguments);
    if (copy.Decode(reader) != wire::WireResult::kOk) return;
    if (!copy.pull && !copy.revisable) continue;
    bytes += copy.bytes;
    if (bytes > most) return;
    next.step = kReachedAhead;
    Reach(session, copy.transfer, copy.pull);
  }
}

CUresult IssuePieces(CallContext& context, const calls::lwCopyToDevice& call,
                     const CopyPlace& place) {
  WorkerSession& session = context.session();
  Transfers& transfers = session.transfers();
  Stream& stream = *context.stream();
  QueuedCall& record = context.call();
  const bool later = call.pull || call.revisable;
  if (record.step != kBegun) {
    bool waits = later && record.step == kNotBegun;
    if (record.step == kReachedAhead) stream.reached = record.position;
    record.step = kBegun;
    transfers.BeginLanding(call.transfer, context.stream());
    if (waits) {
      stream.actions.push_back([&session, &stream, id = call.transfer, pull = call.pull,
                                position = record.position](bool good) {
        if (!good) return;
        Reach(session, id, pull);
        stream.reached = position;
      });
      return kNotYet;
    }
  }
  if (later && stream.reached != record.position) return kNotYet;
  if (later) ReachBehind(session, stream, call.bytes);
  while (record.progress < call.bytes) {
    bool wrong = false;
    Transfers::Piece piece;
    if (!transfers.Take(call.transfer, &piece, &wrong)) {
      return wrong ? CUDA_ERROR_INVALID_VALUE : kNotYet;
    }
    size_t before = piece.done;
    CUresult result = IssuePiece(context, place, piece);
    record.progress += piece.done - before;
    if (result == kNotYet) {
      transfers.PutBack(call.transfer, std::move(piece));
      return kNotYet;
    }
    transfers.Used(piece);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

// How a part of a copy leaves.
struct PartWay {
  bool lanes = false;  // the copy may use them
  bool log = false;    // this part takes the log, if that has not become full
  bool last = false;
};

// Sends a part of a copy that has arrived in its block, or drops it.
void SendPart(WorkerSession& session, const Lanes::Part& part, bool good, PartWay way) {
  const bool by_lanes =
      way.lanes && !(way.log && session.lanes().InLog(part.bytes, session.down().Backlog()) != 0);
  if (good && by_lanes) session.lanes().Send(part);
  if (good && !by_lanes) {
    session.down().Data(part.transfer, part.offset, std::span(part.block.data, part.bytes));
  }
  // Behind this everything in the log means that the whole copy has arrived.
  if (good && way.lanes && way.last && part.bridge == 0) {
    session.down().Landing(part.transfer, part.offset + part.bytes);
  }
  if (!good || !by_lanes) session.staging().Release(*part.stream, part.block);
}

// The last ones, so that the lanes' threads wake up while the log's bytes are written.
bool IsForLog(WorkerSession& session, uint64_t offset, uint64_t bytes) {
  return offset >= bytes - session.lanes().InLog(bytes, session.down().Backlog());
}

}  // namespace

CUresult SendPieces(CallContext& context, const calls::Place& from, uint64_t bytes,
                    const PiecesTo& to) {
  CopyPlace place;
  CUresult result = Resolve(context, from, bytes, &place);
  if (result != CUDA_SUCCESS || bytes == 0) return result;
  WorkerSession& session = context.session();
  const auto& stream = context.stream();
  QueuedCall& record = context.call();
  const bool by_lanes = to.by_lanes;
  uint64_t most = by_lanes ? session.lanes().PieceOf(bytes, to.bridge) : Staging::kMaxBlockBytes;
  const uint32_t lanes = session.lanes().CountOf(to.bridge);
  while (record.progress < bytes) {
    size_t part = std::min<uint64_t>(bytes - record.progress, most);
    StagingBlock block;
    // No further ahead of the lanes than they need: what they read is then still in the caches.
    bool ahead = by_lanes && stream->staging_blocks >= kPartsPerLane * lanes;
    if (ahead || !context.session().staging().Acquire(*context.stream(), part, &block)) {
      if (to.bridge != 0) session.bridge_figures().Waits();
      return kNotYet;
    }
    if (to.bridge != 0) session.bridge_figures().GoesOn();
    const auto issued = Clock::now();
    result = CopyPacked(context.driver(), StreamOf(context), place, record.progress, part,
                        block.data, CopyDirection::kToHost);
    bool copied = result == CUDA_SUCCESS;
    Lanes::Part sent = {to.transfer, record.progress, part, block, nullptr, to.bridge, issued};
    const PartWay way = {
        .lanes = by_lanes,
        .log = by_lanes && to.bridge == 0 && IsForLog(session, record.progress, bytes),
        .last = record.progress + part == bytes};
    // Not a whole reference: the stream holds its actions.
    stream->actions.push_back(
        [&session, sent, copied, way, owner = std::weak_ptr<Stream>(stream)](bool good) mutable {
          sent.stream = owner.lock();
          if (sent.bridge != 0) {
            const auto now = Clock::now();
            session.bridge_figures().Add(BridgeFigures::kRead, now - sent.at);
            sent.at = now;
          }
          SendPart(session, sent, good && copied, way);
        });
    if (!copied) return result;
    record.progress += part;
    // Each part is sent while the next one is copied.
    if (record.progress < bytes) session.issuer().PlaceMarker(stream);
  }
  stream->push_next = true;
  return CUDA_SUCCESS;
}

CUresult ReceivePieces(CallContext& context, const calls::lwCopyToDevice& call) {
  CopyPlace place;
  CUresult result = Resolve(context, call.place, call.bytes, &place);
  return result == CUDA_SUCCESS && call.bytes != 0 ? IssuePieces(context, call, place) : result;
}

// Only where the program could have pinned its memory: there it is shared.
static void CountCopy(CallContext& context, bool up, uint64_t bytes) {
  WorkerSession& session = context.session();
  if (session.host_segment().descriptor() >= 0) session.statistics().CountCopy(up, false, bytes);
}

CUresult Do_lwCopyToDevice(CallContext& context, const calls::lwCopyToDevice& call,
                           calls::lwCopyToDevice::Reply*) {
  CopyPlace place;
  CUresult result = Resolve(context, call.place, call.bytes, &place);
  if (result == CUDA_SUCCESS && !call.data.empty() && call.data.size() != call.bytes) {
    result = CUDA_ERROR_INVALID_VALUE;
  }
  if (result == CUDA_SUCCESS && call.bytes != 0) {
    if (context.capturing()) {
      result = context.session().graphs().CaptureUpload(*context.stream(), call.place, place,
                                                        call.transfer, call.data);
    } else if (call.data.empty()) {
      result = IssuePieces(context, call, place);
    } else {
      result = call.data.size() > Staging::kMaxBlockBytes ? CUDA_ERROR_INVALID_VALUE
                                                          : Upload(context, place, 0, call.data);
    }
  }
  if (result == CUDA_SUCCESS && !context.capturing()) CountCopy(context, true, call.bytes);
  if (result != kNotYet && call.data.empty() && !context.capturing()) {
    context.session().transfers().FinishCopy(call.transfer);
  }
  return result;
}

CUresult Do_lwCopyData(CallContext& context, const calls::lwCopyData& call,
                       calls::lwCopyData::Reply*) {
  if (!context.session().transfers().Arrived(call.transfer, call.offset, call.data,
                                             Transfers::Way::kLog)) {
    context.session().Fatal("bytes of an unknown transfer, or more bytes than were credited");
  }
  context.session().graphs().BytesArrived();
  return CUDA_SUCCESS;
}

CUresult Do_lwCopyRevised(CallContext& context, const calls::lwCopyRevised& call,
                          calls::lwCopyRevised::Reply*) {
  if (!context.session().transfers().Revise(call.transfer, call.offset, call.data)) {
    context.session().Fatal("revised bytes are outside their copy");
  }
  return CUDA_SUCCESS;
}

CUresult Do_lwCopyPull(CallContext& context, const calls::lwCopyPull& call,
                       calls::lwCopyPull::Reply*) {
  context.session().transfers().PullInstead(call.transfer);
  return CUDA_SUCCESS;
}

CUresult Do_lwCopyToHost(CallContext& context, const calls::lwCopyToHost& call,
                         calls::lwCopyToHost::Reply*) {
  CopyPlace place;
  if (context.capturing()) {
    CUresult result = Resolve(context, call.place, call.bytes, &place);
    if (result != CUDA_SUCCESS || call.bytes == 0) return result;
    return context.session().graphs().CaptureDownload(*context.stream(), call.place, place,
                                                      call.transfer);
  }
  const bool by_lanes = !call.in_log && context.session().lanes().Carries(call.bytes);
  CUresult result = SendPieces(context, call.place, call.bytes,
                               {.transfer = call.transfer, .bridge = 0, .by_lanes = by_lanes});
  if (result == CUDA_SUCCESS) CountCopy(context, false, call.bytes);
  return result;
}

CUresult Do_lwCopyDevice(CallContext& context, const calls::lwCopyDevice& call,
                         calls::lwCopyDevice::Reply*) {
  CopyPlace to, from;
  CUresult result = Resolve(context, call.destination, call.bytes, &to);
  if (result == CUDA_SUCCESS) result = Resolve(context, call.source, call.bytes, &from);
  if (result != CUDA_SUCCESS || call.bytes == 0) return result;
  return CopyBetween(context.driver(), StreamOf(context), to, from);
}

CUresult Do_lwCopyKept(CallContext& context, const calls::lwCopyKept& call,
                       calls::lwCopyKept::Reply* reply) {
  Transfers::Image kept;
  if (context.context() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  CUresult fetched = FetchImage(context.session().image_sources(), call, &kept, &reply->knowledge);
  if (fetched == CUDA_ERROR_INVALID_IMAGE) return CUDA_ERROR_INVALID_VALUE;
  LONGWIRE_TRY(fetched);
  if (const std::string rule = context.session().rules().DeniedBy(CallId::lwCopyKept);
      !rule.empty()) {
    return context.Deny(rule, "a copy of memory that the server keeps");
  }
  // A stream of its own: the driver's plain copy would wait for other streams' work.
  const DriverTable& driver = context.driver();
  CUstream stream = nullptr;
  LONGWIRE_TRY(driver.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CUresult result =
      driver.cuMemcpyHtoDAsync_v2(call.address, kept.bytes.data(), call.bytes, stream);
  CUresult done = driver.cuStreamSynchronize(stream);
  driver.cuStreamDestroy_v2(stream);
  return result == CUDA_SUCCESS ? done : result;
}

CUresult Do_lwCopyPinned(CallContext& context, const calls::lwCopyPinned& call,
                         calls::lwCopyPinned::Reply*) {
  CopyPlace device, host;
  LONGWIRE_TRY(Resolve(context, call.place, call.bytes, &device));
  if (context.capturing() || !context.session().host_segment().Find(call.host, call.bytes, &host)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  context.session().statistics().CountCopy(call.to_host == 0, true, call.bytes);
  // As a copy to the host that is sent: whoever made it looks for its end next.
  if (call.to_host) context.stream()->push_next = true;
  return call.to_host ? CopyBetween(context.driver(), StreamOf(context), host, device)
                      : CopyBetween(context.driver(), StreamOf(context), device, host);
}

CUresult Do_lwMemset(CallContext& context, const calls::lwMemset& call, calls::lwMemset::Reply*) {
  const DriverTable& driver = context.driver();
  CUstream stream = context.stream()->handle;
  bool flat = call.rows == 1;
  switch (call.element_bytes) {
    case 1: {
      auto value = static_cast<unsigned char>(call.value);
      return flat ? driver.cuMemsetD8Async(call.address, value, call.width, stream)
                  : driver.cuMemsetD2D8Async(call.address, call.pitch, value, call.width, call.rows,
                                             stream);
    }
    case 2: {
      auto value = static_cast<unsigned short>(call.value);
      return flat ? driver.cuMemsetD16Async(call.address, value, call.width, stream)
                  : driver.cuMemsetD2D16Async(call.address, call.pitch, value, call.width,
                                              call.rows, stream);
    }
    case 4:
      return flat ? driver.cuMemsetD32Async(call.address, call.value, call.width, stream)
                  : driver.cuMemsetD2D32Async(call.address, call.pitch, call.value, call.width,
                                              call.rows, stream);
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

}  // namespace longwire::worker
