// Memory of the host in pieces of one size, by which the bytes of device memory leave the old
// worker of a move and reach the new one. Where both workers are on one server the pieces are the
// new worker's, which it shares: then only heads go through the stream, and while the one worker
// copies a piece out of its device the other copies the last one into its own.
//
// The copies wait, and the memory is not pinned: pinned memory, streams and events take places of
// the driver's, and what is loaded after them lies elsewhere than in a worker without.
//
// All of it where the device's primary context is current.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "server/worker/support/driver.h"
#include "wire/rings/segment.h"

namespace longwire::worker {

class MovePieces {
 public:
  // The device copies one in some tenths of a millisecond, which is long beside what a head costs.
  static constexpr size_t kPieceBytes = size_t{4} << 20;
  static constexpr size_t kPieces = 8;
  static constexpr size_t kAllBytes = kPieces * kPieceBytes;

  explicit MovePieces(const DriverTable& driver) : MovePieces(driver, MakeShared()) {}
  // In this memory; where it is none, in ordinary memory of the process.
  MovePieces(const DriverTable& driver, wire::Descriptor memory);
  MovePieces(const MovePieces&) = delete;
  MovePieces& operator=(const MovePieces&) = delete;

  std::span<std::byte> piece(size_t number) {
    return all().subspan(number * kPieceBytes, kPieceBytes);
  }
  // All of them, one behind the other.
  std::span<std::byte> all() { return {data_, kAllBytes}; }
  // Of the memory, for another process; -1: it cannot be shared.
  int descriptor() const { return memory_.get(); }

  CUresult CopyOut(size_t number, CUdeviceptr from, size_t bytes);
  CUresult CopyIn(CUdeviceptr to, std::span<const std::byte> from);

  // An offer of the new worker's memory, over the stream on which the old one writes. False if it
  // cannot be made.
  bool Offer(int stream);
  // The memory that was offered, without waiting; invalid: none was.
  static wire::Descriptor Offered(int stream);

 private:
  static wire::Descriptor MakeShared();

  const DriverTable& driver_;
  wire::Descriptor memory_;
  std::unique_ptr<wire::SegmentMapping> mapping_;
  std::vector<std::byte> own_;  // where nothing can be shared
  std::byte* data_ = nullptr;
};

}  // namespace longwire::worker
