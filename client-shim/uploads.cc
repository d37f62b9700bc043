#include "client-shim/uploads.h"

#include <algorithm>
#include <atomic>

#include "client-shim/process.h"
#include "client-shim/work_thread.h"
#include "longwire/calls.h"

namespace longwire::shim {
namespace {

// Bytes sent that the worker has not taken yet. Changed by senders and by whoever reads credits.
std::atomic<uint64_t> under_way{0};

WorkThread& Sender() {
  static NeverDestroyed<WorkThread> sender("longwire-send");
  return *sender;
}

}  // namespace

bool FitsUploadWindow(uint64_t bytes) {
  // One piece always fits, whatever the server said.
  uint64_t window = std::max<uint64_t>(TheSession().opened().upload_window, wire::kCopyPieceBytes);
  return under_way.load(std::memory_order_relaxed) + bytes <= window;
}

bool SendBytes(Session& session, uint64_t transfer, const HostPlace& place, Window window) {
  uint64_t total = place.bytes();
  for (uint64_t offset = 0; offset < total;) {
    uint64_t bytes = std::min<uint64_t>(total - offset, wire::kCopyPieceBytes);
    if (window == Window::kCounted) {
      if (!FitsUploadWindow(bytes) && !session.WaitUntil([&] { return FitsUploadWindow(bytes); })) {
        return false;
      }
      under_way.fetch_add(bytes);
    }
    // The piece is gathered straight into the log: the record is a calls::lwCopyData.
    auto encode = [&](wire::Writer& writer) {
      writer.U64(transfer);
      writer.U64(offset);
      writer.U32(static_cast<uint32_t>(bytes));
      std::byte* to = writer.Grow(bytes);
      if (to != nullptr) place.Gather(offset, {to, bytes});
    };
    if (session.AppendEncoded({}, static_cast<uint16_t>(calls::lwCopyData::kId), encode,
                              bytes + 64) == Session::kNoPosition) {
      return false;
    }
    session.counts().uploaded.fetch_add(bytes, std::memory_order_relaxed);
    offset += bytes;
  }
  return true;
}

void ServePull(Session& session, uint64_t transfer) {
  HostPlace place;
  if (!session.transfers().FindUpload(transfer, &place)) return;
  Sender().Post([&session, transfer, place] { SendBytes(session, transfer, place); });
}

void ReturnCredit(Session& session, uint64_t bytes) {
  uint64_t before = under_way.load();
  while (!under_way.compare_exchange_weak(before, before - std::min(before, bytes))) {
  }
  session.WakeWaiters();
}

}  // namespace longwire::shim
