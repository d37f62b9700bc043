#include "client-shim/session/uploads.h"

#include <algorithm>
#include <atomic>

#include "client-shim/session/lanes.h"
#include "client-shim/session/session.h"
#include "client-shim/support/work_thread.h"
#include "longwire/calls.h"
#include "wire/lane.h"
#include "wire/rings/pieces.h"

namespace longwire::shim {
namespace {

// One piece always fits, whatever the server said.
uint64_t UploadWindow(const ClientSession& session) {
  return std::max<uint64_t>(session.opened().upload_window, wire::kCopyPieceBytes);
}

WorkThread& Sender() {
  static NeverDestroyed<WorkThread> sender("longwire-send");
  return *sender;
}

// Of its own: copies wait for the window of uploads, images do not.
WorkThread& ImageSender() {
  static NeverDestroyed<WorkThread> sender("longwire-image");
  return *sender;
}

}  // namespace

bool FitsUploadWindow(ClientSession& session, uint64_t bytes) {
  return session.uploads_under_way().load(std::memory_order_relaxed) + bytes <=
         UploadWindow(session);
}

uint64_t LargestPiece(const ClientSession& session, uint64_t wanted) {
  return std::clamp<uint64_t>(UploadWindow(session) / 4, wire::kMinLaneChunk, wanted);
}

bool WaitForUploadWindow(ClientSession& session, uint64_t bytes) {
  std::atomic<uint64_t>& under_way = session.uploads_under_way();
  while (true) {
    uint64_t before = under_way.load(std::memory_order_relaxed);
    if (before + bytes > UploadWindow(session)) {
      if (!session.WaitUntil([&] { return FitsUploadWindow(session, bytes); })) return false;
    } else if (under_way.compare_exchange_weak(before, before + bytes)) {
      return true;
    }
  }
}

// Bytes [from, to) in pieces.
static bool Send(ClientSession& session, uint64_t transfer, const UploadSource& source,
                 uint64_t from, uint64_t to, uint64_t piece, Window window) {
  for (uint64_t offset = from; offset < to;) {
    uint64_t bytes = std::min<uint64_t>(to - offset, piece);
    if (window == Window::kCounted && !WaitForUploadWindow(session, bytes)) return false;
    // The piece is gathered straight into the log: the record is a calls::lwCopyData.
    auto encode = [&](wire::Writer& writer) {
      writer.U64(transfer);
      writer.U64(offset);
      writer.U32(static_cast<uint32_t>(bytes));
      std::byte* to = writer.Grow(bytes);
      if (to != nullptr) source.Gather(offset, {to, bytes});
    };
    if (session.AppendEncoded({}, static_cast<uint16_t>(calls::lwCopyData::kId), encode,
                              calls::lwCopyData().EncodedBytes() + bytes) ==
        ClientSession::kNoPosition) {
      return false;
    }
    session.counts().uploaded.fetch_add(bytes, std::memory_order_relaxed);
    offset += bytes;
  }
  return true;
}

bool SendBytes(ClientSession& session, uint64_t transfer, const UploadSource& source,
               Window window) {
  const uint64_t total = source.bytes();
  const uint64_t piece = window == Window::kCounted ? wire::LogPiece(total) : wire::kCopyPieceBytes;
  return Send(session, transfer, source, 0, total, piece, window);
}

bool SendRange(ClientSession& session, uint64_t transfer, const UploadSource& source, uint64_t from,
               uint64_t to) {
  return Send(session, transfer, source, from, to, wire::LogPiece(to - from), Window::kCounted);
}

bool SendImage(ClientSession& session, uint64_t transfer, const HostPlace& place) {
  return SendBytes(session, transfer, UploadSource(place), Window::kNotCounted);
}

bool SendCopy(ClientSession& session, uint64_t transfer, const UploadSource& source) {
  bool by_lanes = session.lanes().Carries(source.bytes());
  return by_lanes ? session.lanes().Send(transfer, source) : SendBytes(session, transfer, source);
}

bool ServePull(ClientSession& session, uint64_t transfer) {
  HostPlace place;
  if (session.transfers().TakeImage(transfer, &place)) {
    ImageSender().Post([&session, transfer, place] {
      SendImage(session, transfer, place);
      session.transfers().ImageRead(transfer);
    });
    return true;
  }
  Transfers::Request request;
  Transfers::Taken taken = session.transfers().TakeUpload(transfer, &request);
  if (taken != Transfers::Taken::kNow) return taken == Transfers::Taken::kGone;
  Sender().Post([&session, transfer, request] {
    UploadSource source(session.transfers(), request);
    // A graph's bytes come again with each launch: the log keeps launches apart.
    if (request.persistent) {
      SendBytes(session, transfer, source);
    } else {
      SendCopy(session, transfer, source);
    }
    session.transfers().UploadRead(transfer);
  });
  return true;
}

void ReturnCredit(ClientSession& session, uint64_t bytes) {
  std::atomic<uint64_t>& under_way = session.uploads_under_way();
  uint64_t before = under_way.load();
  while (!under_way.compare_exchange_weak(before, before - std::min(before, bytes))) {
  }
  session.WakeWaiters();
}

}  // namespace longwire::shim
