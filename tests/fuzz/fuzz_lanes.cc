// A lane's log at the client's end: records from arbitrary bytes, each a piece of a copy into
// memory with rows. Nothing beside that memory may be written, and nothing beside the log be read.
#include <cstring>
#include <memory>

#include "client-shim/session/transfers.h"
#include "wire/lane.h"
#include "wire/record.h"

using namespace longwire;

namespace {

constexpr uint64_t kTransfer = 1;  // there is no other: pieces of others are nobody's

// Memory of just the size that rows of a width need.
struct Target {
  shim::HostPlace place;
  std::unique_ptr<std::byte[]> memory;

  Target(uint8_t width, uint8_t gap, uint8_t rows, uint8_t slices) {
    place.width = width % 32 + 1;
    place.pitch = place.width + gap % 8;
    place.rows = rows % 8 + 1;
    place.slices = slices % 4 + 1;
    place.slice_pitch = place.pitch * place.rows;
    size_t slices_before = place.slice_pitch * (place.slices - 1);
    memory.reset(new std::byte[slices_before + place.pitch * (place.rows - 1) + place.width]());
    place.base = memory.get();
  }
};

void TakePieces(std::span<const std::byte> log, shim::Transfers* transfers) {
  wire::LaneHeader header;
  size_t bytes = 0;
  while (wire::PeekRecord(log, &header, &bytes, sizeof(header)) == wire::WireResult::kOk &&
         bytes != 0) {
    auto data = log.subspan(sizeof(header), bytes - sizeof(header));
    if (!transfers->Arrive(header.transfer, header.offset, data)) return;
    log = log.subspan(wire::AlignLane(bytes));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 4) return 0;
  Target target(data[0], data[1], data[2], data[3]);
  shim::Transfers transfers;
  transfers.ExpectDownload(kTransfer, target.place, false);
  // On the heap and no longer than it is, so that reading beyond it shows.
  std::unique_ptr<std::byte[]> log(new std::byte[size - 4]);
  std::memcpy(log.get(), data + 4, size - 4);
  TakePieces({log.get(), size - 4}, &transfers);
  transfers.DropDownload(kTransfer);
  return 0;
}
