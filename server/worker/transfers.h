// Upload bytes that arrived ahead of their use: pieces of copies, whole module images, the host
// reads of graphs. A piece is credited to the client when it arrives while little is kept, else
// when it is used, so that copies behind a waiting stream do not hold up other streams. Images are
// not counted: the client waits for each one's answer.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "server/worker/in_flight.h"
#include "server/worker/objects.h"

namespace longwire::worker {

class Transfers {
 public:
  using Credit = std::function<void(uint64_t bytes)>;
  explicit Transfers(Credit credit) : credit_(std::move(credit)) {}
  // Before the session starts.
  void SetLimits(const InFlightLimits& limits) { limits_ = limits; }
  const InFlightLimits& limits() const { return limits_; }

  struct Piece {
    uint64_t offset = 0;
    std::vector<std::byte> bytes;
    bool credited = false;
  };

  // A copy of `bytes` bytes will use this transfer. False if the number is in use.
  bool ExpectCopy(uint64_t transfer, uint64_t bytes);
  // The piece that starts at `offset`, or null if it is not there yet. *wrong: what came is not
  // what the copy needs.
  Piece* Front(uint64_t transfer, uint64_t offset, bool* wrong);
  void PopFront(uint64_t transfer);
  // The copy is done with, or fell away: later pieces of it are only credited.
  void FinishCopy(uint64_t transfer);

  // Bytes that the part reads go into its memory from now on.
  void AttachGraph(const std::shared_ptr<GraphPart>& part);
  void DetachGraph(uint64_t transfer);

  // False: the client broke a rule (too much, out of range).
  bool Arrived(uint64_t transfer, uint64_t offset, std::span<const std::byte> bytes);

  // A module image that arrived whole; any thread. The buffer has kPadding zeros behind the bytes.
  static constexpr size_t kPadding = 64;
  bool TakeImage(uint64_t transfer, uint64_t bytes, std::vector<std::byte>* image);

 private:
  struct Copy {
    uint64_t bytes = 0;
    uint64_t arrived = 0;
    bool finished = false;
    std::deque<Piece> pieces;
  };
  bool ArrivedCopy(Copy& copy, uint64_t offset, std::span<const std::byte> bytes);

  Credit credit_;
  InFlightLimits limits_ = InFlightLimits::Of(InFlightLimits::kDefaultBytes);
  std::mutex mutex_;
  std::unordered_map<uint64_t, Copy> copies_;
  std::unordered_map<uint64_t, std::weak_ptr<GraphPart>> graphs_;
  std::unordered_map<uint64_t, std::vector<std::byte>> images_;
  uint64_t image_bytes_ = 0;
  uint64_t kept_ = 0;  // bytes of pieces of copies
};

}  // namespace longwire::worker
