// Where more memory is exposed than is copied at once, and words are independent: which parts of it
// are exchanged next. The parts that changed last come each time, and the others in turn.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace longwire::shim {

struct Mirror;

// A part of a mirror.
struct MirrorPart {
  Mirror* mirror = nullptr;
  uint64_t offset = 0, bytes = 0;
};

class LookChoice {
 public:
  static constexpr uint64_t kPartBytes = uint64_t{64} << 10;

  // All of the mirrors, where they are few and small enough; else some parts of them.
  std::vector<MirrorPart> Choose(std::span<Mirror* const> mirrors);
  // Something has changed there.
  void Note(uint64_t mirror, uint64_t offset);

 private:
  using Part = std::pair<uint64_t, uint64_t>;  // the mirror's number, and which part of it

  std::vector<Part> recent_;  // the last one first
  Part next_{0, 0};           // in turn
};

}  // namespace longwire::shim
