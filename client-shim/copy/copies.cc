#include "client-shim/copy/copies.h"

#include <vector>

#include "base/memory_sizes.h"
#include "base/try.h"
#include "client-shim/connect/options.h"
#include "client-shim/context/context.h"
#include "client-shim/copy/array_shapes.h"
#include "client-shim/copy/cached_uploads.h"
#include "client-shim/copy/copies_across.h"
#include "client-shim/copy/host_copies.h"
#include "client-shim/copy/peer_order.h"
#include "client-shim/copy/remap_copies.h"
#include "client-shim/copy/speculative_uploads.h"
#include "client-shim/copy/upload_choice.h"
#include "client-shim/memory/pointers.h"
#include "client-shim/memory/reach.h"
#include "client-shim/mirror/host_exposure.h"
#include "client-shim/mirror/host_memory.h"
#include "client-shim/mirror/mirrors.h"
#include "client-shim/mirror/shared_blocks.h"
#include "client-shim/session/lanes.h"
#include "client-shim/session/pinned_segment.h"
#include "client-shim/session/session.h"
#include "client-shim/session/uploads.h"
#include "client-shim/stream/callbacks.h"
#include "client-shim/stream/capture.h"
#include "client-shim/stream/early_copies.h"
#include "client-shim/stream/host_writes.h"
#include "client-shim/stream/program_streams.h"
#include "client-shim/support/own_memory.h"
#include "longwire/calls.h"

namespace longwire::shim {
namespace {

bool Multiply(uint64_t a, uint64_t b, uint64_t* product) {
  return !__builtin_mul_overflow(a, b, product) && *product <= base::kMaxMemoryBytes;
}

// The bytes from the first to the last that one linear side touches. False on absurd sizes.
bool Span(const CopySide& side, const Extent& extent, uint64_t* first, uint64_t* bytes) {
  uint64_t slice_pitch = 0, rows = 0, slices = 0;
  if (!Multiply(side.pitch, side.height, &slice_pitch)) return false;
  if (!Multiply(extent.rows - 1, side.pitch, &rows)) return false;
  if (!Multiply(extent.slices - 1, slice_pitch, &slices)) return false;
  uint64_t start_rows = 0, start_slices = 0;
  if (!Multiply(side.y, side.pitch, &start_rows)) return false;
  if (!Multiply(side.z, slice_pitch, &start_slices)) return false;
  if (side.x_bytes > base::kMaxMemoryBytes) return false;
  *first = start_slices + start_rows + side.x_bytes;
  *bytes = slices + rows + extent.width;
  return true;
}

// Fills in defaults and finds out what the side is; refuses what the driver would refuse. In a
// graph live memory is copied as the device's: no copy of the graph's passes this process.
CUresult Resolve(CopySide* side, const Extent& extent, bool in_graph) {
  if (side->pitch == 0) side->pitch = side->x_bytes + extent.width;
  if (side->height == 0) side->height = side->y + extent.rows;
  if (side->kind == CopySide::Kind::kArray) {
    return CheckArray(*side, extent);
  }
  // The program's memory that is mirrored is copied on the device, in the stream's order.
  if (FindMirror(side->address, &side->address) || (in_graph && IsLive(side->address))) {
    side->kind = CopySide::Kind::kDevice;
  } else if (IsKnownHost(side->address)) {
    side->kind = CopySide::Kind::kHost;
  }
  if (side->kind == CopySide::Kind::kEither) {
    side->kind = IsDeviceAddress(side->address) ? CopySide::Kind::kDevice : CopySide::Kind::kHost;
  }
  if (side->address == 0) return CUDA_ERROR_INVALID_VALUE;
  uint64_t first = 0, bytes = 0;
  if (!Span(*side, extent, &first, &bytes)) return CUDA_ERROR_INVALID_VALUE;
  if (extent.rows > 1 && side->pitch < extent.width) return CUDA_ERROR_INVALID_VALUE;
  if (side->kind == CopySide::Kind::kDevice) return CheckDeviceRange(side->address + first, bytes);
  // Pinned memory counts as the program's, even if another thread is exposing it to the device.
  bool is_device = IsDeviceAddress(side->address) && !IsKnownHost(side->address);
  return is_device ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

// The bytes of the program's memory that a side covers. The side must have been resolved.
struct HostBytes {
  uint64_t address = 0;
  uint64_t bytes = 0;
  bool pinned() const { return IsPinned(reinterpret_cast<void*>(address), bytes); }
};

HostBytes BytesOf(const CopySide& side, const Extent& extent) {
  uint64_t first = 0;
  HostBytes range;
  if (Span(side, extent, &first, &range.bytes)) range.address = side.address + first;
  return range;
}

// Copies reach the allocations of all devices; the program's own mappings only where access was
// set. Captured copies need access everywhere: in a graph they cannot be peer copies.
CUresult CheckReach(const CopySide& side, Stream* stream, Peers peers) {
  if (side.kind != CopySide::Kind::kDevice) return CUDA_SUCCESS;
  int own = stream->context->device;
  bool captured = stream->capture.load() != nullptr;
  if (captured && (peers == Peers::kYes || !Reaches(own, side.address))) {
    return RefuseWhileCapturing(stream);
  }
  bool reaches = CopyReaches(side.device >= 0 ? side.device : own, side.address);
  return reaches ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult Posted(uint64_t position) { return ClientSession::Queued(position); }

template <class Call>
uint64_t SubmitWork(Stream* stream, const Where& where, const Call& call, size_t bound = 1024,
                    Sends sends = Sends::kNow) {
  DeviceWork work(stream, sends);
  return where.session->Submit(where, call, bound);
}

// Work of the device alone: even the waiting forms return at once, unless the program can read what
// was written, may write what is read, or wants them to wait: `written` bytes from `address` on.
// `source`: 0 if there is none. `from_host`: the device reads what the program has there by then.
template <class Call>
CUresult SubmitSeen(Stream* stream, const Where& where, const Call& call, Waits waits,
                    uint64_t address, uint64_t written, uint64_t source, bool from_host = false) {
  const bool late = where.flags == 0 && from_host && !IsReachedAtOnce(stream);
  bool mirrored = IsMirrored(address), live = IsLive(address);
  Sends sends = mirrored ? Sends::kNow : Sends::kPerhapsLater;
  uint64_t position = SubmitWork(stream, where, call, 1024, sends);
  if (position == ClientSession::kNoPosition) return ClientSession::NotQueued();
  if (late) NoteMirroredRead(stream, position);
  bool captured = stream->capture.load() != nullptr;
  if (live && !captured) {
    NoteHostWrite(stream, position, address, written, WriteOrder::kInStream);
  }
  if (waits == Waits::kAsync || captured) return CUDA_SUCCESS;
  bool wanted = HasSyncMemops(address) || HasSyncMemops(source);
  if (!wanted && !mirrored && !live && !from_host) return CUDA_SUCCESS;
  CUresult result = WaitForStream(stream, position);
  return result == CUDA_SUCCESS ? TakeError(stream->context) : result;
}

// Whether the worker's driver can copy from or to the program's side itself, in the stream's order.
// Not while this process has yet to write there: its writes are not part of the stream's order.
// Live memory it never writes for a stream, and kernels may be waiting for the bytes in its order.
bool IsWithWorker(Stream* stream, const CopySide& host, const Extent& extent,
                  const HostBytes& range, calls::lwCopyPinned* copy) {
  uint64_t offset = 0;
  bool shared = stream->capture.load() == nullptr && range.pinned() &&
                FindPart(range.address, range.bytes, &offset) &&
                (IsLive(range.address) || !LateHostWritePending(range.address, range.bytes));
  if (!shared) return false;
  copy->host = WirePlace(host, extent);
  copy->host.address = offset;
  copy->host.x_bytes = copy->host.y = copy->host.z = 0;
  return true;
}

CUresult CopyWithWorker(Stream* stream, const Where& where, calls::lwCopyPinned& copy,
                        const CopySide& device, const Extent& extent, const HostBytes& range,
                        Waits waits) {
  copy.place = WirePlace(device, extent);
  copy.bytes = extent.width * extent.rows * extent.slices;
  uint64_t position = SubmitWork(stream, where, copy);
  if (position == ClientSession::kNoPosition) return ClientSession::NotQueued();
  if (waits == Waits::kAsync) {
    if (copy.to_host) {
      NoteHostWrite(stream, position, range.address, range.bytes, WriteOrder::kInStream);
    }
    return CUDA_SUCCESS;
  }
  CUresult result = WaitForStream(stream, position);
  return result == CUDA_SUCCESS ? TakeError(stream->context) : result;
}

// The worker pulls the bytes when the stream reaches the copy.
CUresult PulledUpload(const Where& where, calls::lwCopyToDevice& copy, const HostPlace& source,
                      Stream* stream, uint64_t* position) {
  ClientSession& session = *where.session;
  Capture* capture = stream->capture.load();
  copy.transfer = session.NewId();
  copy.pull = true;
  session.transfers().OfferUpload(copy.transfer, source, capture != nullptr);
  *position = SubmitWork(stream, where, copy);
  if (capture == nullptr) {
    session.EndsWith(stream, *position, {Ending::Kind::kUpload, copy.transfer});
  }
  return Posted(*position);
}

// The bytes are sent now, and again those that the program changes before the stream gets there.
CUresult SpeculativeUpload(const Where& where, calls::lwCopyToDevice& copy, const HostPlace& source,
                           Stream* stream, uint64_t* position) {
  copy.transfer = where.session->NewId();
  copy.revisable = true;
  *position = SubmitWork(stream, where, copy);
  if (*position == ClientSession::kNoPosition) return ClientSession::NotQueued();
  bool sent = SendSpeculatively(stream, *position, copy.transfer, source);
  return sent ? CUDA_SUCCESS : ClientSession::NotSent();
}

// What ChooseUpload has to know. *pinned: the copy's record, if the source is shared.
UploadFacts FactsOf(Stream* stream, const CopySide& source, const Extent& extent,
                    const HostBytes& range, Waits waits, Reads reads, calls::lwCopyPinned* pinned) {
  UploadFacts facts;
  facts.bytes = extent.width * extent.rows * extent.slices;
  // Bytes that may be gone are copied with care.
  facts.contiguous = extent.rows * extent.slices == 1 && !AnyFileMemory();
  facts.captured = stream->capture.load() != nullptr;
  facts.waits = waits == Waits::kSync;
  facts.reads_now = reads == Reads::kNow;
  facts.pinned = range.pinned();
  if (ReadsInOrder(facts)) {
    facts.write_pending = HostWritePending(range.address, range.bytes);
    facts.reached_later = !facts.write_pending && !IsReachedAtOnce(stream);
  }
  facts.shared = !MustReadNow(facts) && IsWithWorker(stream, source, extent, range, pinned);
  facts.fits_window = FitsUploadWindow(*stream->session, facts.bytes);
  facts.fits_lanes = stream->session->lanes().Carries(facts.bytes);
  facts.may_speculate = AsksToSpeculate(facts) && MaySpeculate(*stream->session, facts.bytes);
  return facts;
}

// The bytes are sent now.
CUresult SentUpload(const Where& where, calls::lwCopyToDevice& copy, const HostPlace& source,
                    Stream* stream, UploadWay way, uint64_t* position) {
  ClientSession& session = *where.session;
  std::vector<std::byte> packed;
  if (way == UploadWay::kInline) {
    copy.data = {source.base, copy.bytes};
  } else if (way == UploadWay::kPacked) {
    packed.resize(copy.bytes);
    source.Gather(0, packed);
    copy.data = packed;
  } else {
    copy.transfer = session.NewId();
  }
  *position = SubmitWork(stream, where, copy, copy.EncodedBytes());
  if (*position == ClientSession::kNoPosition) return ClientSession::NotQueued();
  session.counts().uploaded.fetch_add(copy.data.size(), std::memory_order_relaxed);
  bool sent = way == UploadWay::kByLanes ? session.lanes().Send(copy.transfer, UploadSource(source))
              : way == UploadWay::kInLog ? SendBytes(session, copy.transfer, UploadSource(source))
                                         : true;
  return sent ? CUDA_SUCCESS : ClientSession::NotSent();
}

CUresult Upload(Stream* stream, const CopySide& destination, const CopySide& source,
                const Extent& extent, Waits waits, Reads reads) {
  Where where;
  LONGWIRE_TRY(OpenWhere(stream, &where));
  HostPlace from = HostSide(source, extent);
  if (from.rows * from.slices == 1) ExposePointees({from.base, from.bytes()});
  HostBytes range = BytesOf(source, extent);
  calls::lwCopyPinned pinned;
  pinned.to_host = false;
  UploadFacts facts = FactsOf(stream, source, extent, range, waits, reads, &pinned);
  UploadWay way = ChooseUpload(facts);
  if (way == UploadWay::kShared) {
    return CopyWithWorker(stream, where, pinned, destination, extent, range, waits);
  }
  const bool live = IsLive(destination.address);
  bool unobserved = AsksToReturnEarly(facts, way) && !IsMirrored(destination.address) && !live &&
                    MayReturnEarly(stream);
  calls::lwCopyToDevice copy;
  copy.place = WirePlace(destination, extent);
  copy.bytes = facts.bytes;
  copy.transfer = 0;
  copy.pull = copy.revisable = false;
  uint64_t position = 0;
  if (way == UploadWay::kPulled) {
    LONGWIRE_TRY(PulledUpload(where, copy, from, stream, &position));
  } else if (way == UploadWay::kSpeculative) {
    LONGWIRE_TRY(SpeculativeUpload(where, copy, from, stream, &position));
  } else {
    LONGWIRE_TRY(SentUpload(where, copy, from, stream, way, &position));
  }
  if (live && !facts.captured) {
    const HostBytes written = BytesOf(destination, extent);
    NoteHostWrite(stream, position, written.address, written.bytes, WriteOrder::kInStream);
  }
  switch (ChooseReturn(facts, way, unobserved)) {
    case UploadReturn::kAtOnce:
      return CUDA_SUCCESS;
    case UploadReturn::kEarly:
      NoteEarlyCopy(stream, position);
      return CUDA_SUCCESS;
    case UploadReturn::kWhenFinished:
      return WaitForStream(stream, position);
  }
  return CUDA_ERROR_UNKNOWN;
}

// The server's cache may take the bytes of a copy that is large enough for it.
bool IsCachedUpload(Stream* stream, const CopySide& destination, const CopySide& source,
                    const Extent& extent, Waits waits) {
  if (!IsCached(extent.width * extent.rows * extent.slices)) return false;
  HostBytes range = BytesOf(source, extent);
  CacheFacts facts;
  facts.linear = extent.rows * extent.slices == 1 && destination.kind == CopySide::Kind::kDevice;
  facts.waits = waits == Waits::kSync;
  facts.pinned = range.pinned();
  facts.captured = stream->capture.load() != nullptr;
  facts.mirrored = IsMirrored(destination.address);
  facts.write_pending = HostWritePending(range.address, range.bytes);
  return MayBeCached(facts);
}

// The first byte of a side that has one row.
uint64_t LinearStart(const CopySide& side) {
  return side.address + side.z * side.pitch * side.height + side.y * side.pitch + side.x_bytes;
}

CUresult Download(Stream* stream, const CopySide& destination, const CopySide& source,
                  const Extent& extent, Waits waits) {
  Where where;
  LONGWIRE_TRY(OpenWhere(stream, &where));
  HostBytes range = BytesOf(destination, extent);
  calls::lwCopyPinned pinned;
  pinned.to_host = true;
  if (IsWithWorker(stream, destination, extent, range, &pinned)) {
    return CopyWithWorker(stream, where, pinned, source, extent, range, waits);
  }
  ClientSession& session = *where.session;
  HostPlace to = HostSide(destination, extent);
  calls::lwCopyToHost copy;
  copy.place = WirePlace(source, extent);
  copy.bytes = to.bytes();
  copy.transfer = session.NewId();
  Capture* capture = stream->capture.load();
  session.transfers().ExpectDownload(copy.transfer, to, capture != nullptr);
  if (capture != nullptr) return Posted(session.Submit(where, copy));
  // Lanes do not keep copies in order, the log does.
  copy.in_log = HostCopyPending(range.address, range.bytes);
  bool by_lanes = !copy.in_log && session.lanes().Carries(copy.bytes);
  if (by_lanes && !session.lanes().Open()) return ClientSession::NotSent();
  PullInstead(stream, range.address, range.bytes);
  uint64_t position = SubmitWork(stream, where, copy);
  if (position == ClientSession::kNoPosition) {
    session.transfers().DropDownload(copy.transfer);
    return ClientSession::NotQueued();
  }
  if (waits == Waits::kAsync && range.pinned()) {
    NoteHostWrite(stream, position, range.address, range.bytes);
    session.EndsWith(stream, position, {Ending::Kind::kDownload, copy.transfer});
    return CUDA_SUCCESS;
  }
  CUresult result = WaitForStream(stream, position);
  session.transfers().DropDownload(copy.transfer);  // nothing is written after we returned
  return result == CUDA_SUCCESS ? TakeError(stream->context) : result;
}

// Resolves both sides; *bytes is 0 if there is nothing to copy. `in_graph`: as in Resolve.
CUresult ResolveSides(const Extent& extent, CopySide* destination, CopySide* source,
                      uint64_t* bytes, bool in_graph) {
  uint64_t rows = 0;
  if (!Multiply(extent.width, extent.rows, &rows) || !Multiply(rows, extent.slices, bytes)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (*bytes == 0) return CUDA_SUCCESS;
  CUresult result = Resolve(destination, extent, in_graph);
  return result == CUDA_SUCCESS ? Resolve(source, extent, in_graph) : result;
}

}  // namespace

bool IsProgramMemory(uint64_t address) {
  if (uint64_t device_address = 0; FindMirror(address, &device_address)) return false;
  return IsKnownHost(address) || !IsDeviceAddress(address);
}

CUresult DescribeNodeCopy(CopySide destination, CopySide source, const Extent& extent, int device,
                          NodeCopy* node) {
  calls::MemcpyNode& copy = node->copy;
  LONGWIRE_TRY(ResolveSides(extent, &destination, &source, &copy.bytes, true));
  if (copy.bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  for (const CopySide* side : {&destination, &source}) {
    // As in a capture: in a graph it cannot be a peer copy.
    if (side->kind == CopySide::Kind::kDevice && !Reaches(device, side->address)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  copy.destination = WirePlace(destination, extent);
  copy.source = WirePlace(source, extent);
  node->to_program = destination.kind == CopySide::Kind::kHost;
  node->from_program = source.kind == CopySide::Kind::kHost;
  if (node->to_program) {
    node->destination = HostSide(destination, extent);
    HostBytes range = BytesOf(destination, extent);
    copy.write_first = range.address;
    copy.write_span = range.bytes;
  }
  if (node->from_program) {
    node->source = HostSide(source, extent);
    HostBytes range = BytesOf(source, extent);
    copy.read_first = range.address;
    copy.read_span = range.bytes;
  }
  return CUDA_SUCCESS;
}

// Of resolved sides. `named`: the source's address as the program gave it.
static CUresult MakeCopy(Stream* stream, const CopySide& destination, const CopySide& source,
                         const Extent& extent, uint64_t bytes, uint64_t named, Waits waits,
                         Peers peers, Reads reads) {
  using Kind = CopySide::Kind;
  if (IsAcross(stream, destination, source)) {
    return CopyAcross(stream, destination, source, extent, waits);
  }
  if (source.kind == Kind::kHost && destination.kind == Kind::kHost) {
    return CopyInHost(stream, destination, source, extent, waits);
  }
  if (source.kind == Kind::kHost && IsCachedUpload(stream, destination, source, extent, waits)) {
    HostPlace from = HostSide(source, extent);
    return UploadCached(stream, LinearStart(destination), {from.base, bytes});
  }
  if (source.kind == Kind::kHost) return Upload(stream, destination, source, extent, waits, reads);
  if (destination.kind == Kind::kHost) return Download(stream, destination, source, extent, waits);
  Where where;
  LONGWIRE_TRY(OpenWhere(stream, &where));
  const bool host = IsKnownHost(named);
  calls::lwCopyDevice copy;
  copy.destination = WirePlace(destination, extent);
  copy.source = WirePlace(source, extent);
  copy.bytes = bytes;
  if (peers == Peers::kNo && !host && DeferCopy(stream, where, copy)) return CUDA_SUCCESS;
  return SubmitSeen(stream, where, copy, waits, destination.address, bytes, source.address, host);
}

// What is copied in order within the host's memory, and is live, the worker's driver copies.
static void LeaveToDriver(const Extent& extent, CopySide* destination, CopySide* source) {
  using Kind = CopySide::Kind;
  if (destination->kind != Kind::kHost || source->kind != Kind::kHost) return;
  for (CopySide* side : {source, destination}) {
    if (!IsLive(side->address) || !BytesOf(*side, extent).pinned()) continue;
    side->kind = Kind::kDevice;
    return;
  }
}

CUresult Copy(const CopySide& destination_side, const CopySide& source_side, const Extent& extent,
              CUstream handle, Waits waits, Peers peers, Reads reads) {
  Stream* stream = nullptr;
  LONGWIRE_TRY(ResolveForWork(handle, &stream));
  CopySide destination = destination_side, source = source_side;
  uint64_t bytes = 0;
  const bool captured = stream->capture.load() != nullptr;
  CUresult result = ResolveSides(extent, &destination, &source, &bytes, captured);
  if (result != CUDA_SUCCESS || bytes == 0) return result;
  if (waits == Waits::kAsync && reads == Reads::kUsual && !captured &&
      IsAtOnce(KindInHost(destination, destination_side.address),
               KindInHost(source, source_side.address))) {
    waits = Waits::kSync;
  }
  if (waits == Waits::kAsync) LeaveToDriver(extent, &destination, &source);
  for (const CopySide* side : {&destination, &source}) {
    LONGWIRE_TRY(CheckReach(*side, stream, peers));
  }
  const bool is_border = peers == Peers::kYes && waits == Waits::kSync && !captured &&
                         HasOtherDevice(stream, destination, source);
  if (is_border) LONGWIRE_TRY(AwaitDevices(stream, destination, source));
  LONGWIRE_TRY(MakeCopy(stream, destination, source, extent, bytes, source_side.address, waits,
                        peers, reads));
  if (AnyFileMemory()) LONGWIRE_TRY(TakeError(stream->context->home));
  if (is_border) LONGWIRE_TRY(AwaitStream(stream, stream->last.load()));
  return CUDA_SUCCESS;
}

CUresult Memset(uint64_t address, uint64_t pitch, uint32_t element_bytes, uint32_t value,
                uint64_t width, uint64_t rows, CUstream handle, Waits waits) {
  Stream* stream = nullptr;
  LONGWIRE_TRY(ResolveForWork(handle, &stream));
  if (width == 0 || rows == 0) return CUDA_SUCCESS;
  uint64_t row_bytes = 0, before = 0;
  if (!Multiply(width, element_bytes, &row_bytes) || !Multiply(rows - 1, pitch, &before)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (rows > 1 && pitch < row_bytes) return CUDA_ERROR_INVALID_VALUE;
  if (address % element_bytes != 0 || (rows > 1 && pitch % element_bytes != 0)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  LONGWIRE_TRY(ToDeviceAddress(&address));
  LONGWIRE_TRY(CheckDeviceRange(address, before + row_bytes));
  if (!Reaches(stream->context->device, address)) return CUDA_ERROR_INVALID_VALUE;
  Where where;
  LONGWIRE_TRY(OpenWhere(stream, &where));
  calls::lwMemset set;
  set.address = address;
  set.pitch = rows > 1 ? pitch : row_bytes;
  set.element_bytes = element_bytes;
  set.value = value;
  set.width = width;
  set.rows = rows;
  return SubmitSeen(stream, where, set, waits, address, before + row_bytes, 0);
}

}  // namespace longwire::shim
