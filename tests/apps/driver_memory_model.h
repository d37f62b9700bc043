// What driver_memory_random knows of each byte: stores of bytes, the memories that show them, and
// boxes in these. Every memory is read and written in the program's order, so the model does at
// once what streams do later.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "driver_check.h"

namespace {

using Bytes = std::vector<uint8_t>;

constexpr int kNobody = -1;
constexpr size_t kKiB = 1 << 10, kMiB = 1 << 20;

// Bytes that have one order of uses. A lane is a stream of the machine.
struct Store {
  explicit Store(size_t size) : bytes(size) {}
  Bytes bytes;
  int writer = kNobody;      // the lane that may still write it
  std::vector<int> readers;  // the lanes that may still read it since
};

enum class Kind { kAllocated, kPitched, kPooled, kMapped, kArray, kPageable, kPinned, kRegistered };
constexpr const char* kKindNames[] = {"allocated", "pitched",  "pooled", "mapped",
                                      "array",     "pageable", "pinned", "registered"};

struct Physical;

struct Memory {
  Kind kind = Kind::kAllocated;
  int number = 0;
  int context = 0;
  uint64_t address = 0;  // of the program's memory, too
  void* base = nullptr;  // where the program's memory begins
  CUmemoryPool pool = nullptr;
  std::vector<std::shared_ptr<Store>> parts;     // one behind the other
  std::vector<std::shared_ptr<Physical>> under;  // of mapped memory: of each part
  // Of an array; the sizes of a missing dimension are 0.
  CUarray array = nullptr;
  std::shared_ptr<CUmipmappedArray_st> levels;  // what it is a level of
  size_t element = 1, width = 0, height = 0, depth = 0;

  bool is_array() const { return kind == Kind::kArray; }
  bool is_host() const { return kind >= Kind::kPageable; }
  bool is_linear_device() const { return kind < Kind::kArray; }
  size_t bytes() const {
    size_t sum = 0;
    for (const auto& part : parts) sum += part->bytes.size();
    return sum;
  }
};

// Physical memory, which may be mapped at several places.
struct Physical {
  CUmemGenericAllocationHandle handle = 0;
  std::shared_ptr<Store> store;
  int context = 0;
  bool known = false;  // whether its bytes were ever written
};

struct Extent {
  size_t width = 0, rows = 1, slices = 1;
  size_t bytes() const { return width * rows * slices; }
};

// A box in a memory: as the copies' structs describe it, `base` bytes behind the memory's start.
struct Side {
  Memory* memory = nullptr;
  size_t base = 0, x = 0, y = 0, z = 0, pitch = 0, height = 0;

  size_t Offset(size_t row, size_t slice) const {
    return base + ((z + slice) * height + y + row) * pitch + x;
  }
  uint64_t address() const { return memory->address + base; }
};

struct Span {
  Store* store;
  size_t first, end;
};

// Calls act(store, offset in it, offset from `first`, bytes) for each part of the range.
template <class Act>
void ForParts(const Memory& memory, size_t first, size_t bytes, const Act& act) {
  size_t start = 0;
  for (const auto& part : memory.parts) {
    const size_t size = part->bytes.size();
    const size_t from = std::max(first, start), to = std::min(first + bytes, start + size);
    if (from < to) act(part.get(), from - start, from - first, to - from);
    start += size;
  }
}

Bytes Read(const Side& side, const Extent& extent) {
  Bytes all(extent.bytes());
  uint8_t* out = all.data();
  for (size_t slice = 0; slice < extent.slices; ++slice) {
    for (size_t row = 0; row < extent.rows; ++row, out += extent.width) {
      ForParts(*side.memory, side.Offset(row, slice), extent.width,
               [&](Store* store, size_t at, size_t done, size_t bytes) {
                 std::copy_n(store->bytes.begin() + static_cast<ptrdiff_t>(at), bytes, out + done);
               });
    }
  }
  return all;
}

void Write(const Side& side, const Extent& extent, const Bytes& all) {
  const uint8_t* in = all.data();
  for (size_t slice = 0; slice < extent.slices; ++slice) {
    for (size_t row = 0; row < extent.rows; ++row, in += extent.width) {
      ForParts(*side.memory, side.Offset(row, slice), extent.width,
               [&](Store* store, size_t at, size_t done, size_t bytes) {
                 std::copy_n(in + done, bytes, store->bytes.begin() + static_cast<ptrdiff_t>(at));
               });
    }
  }
}

// Behind its last byte, as an offset in the memory.
size_t EndOf(const Side& side, const Extent& extent) {
  return side.Offset(extent.rows - 1, extent.slices - 1) + extent.width;
}

// What the box lies in, with the gaps between its rows.
std::vector<Span> SpansOf(const Side& side, const Extent& extent) {
  std::vector<Span> spans;
  const size_t first = side.Offset(0, 0);
  ForParts(*side.memory, first, EndOf(side, extent) - first,
           [&](Store* store, size_t at, size_t, size_t bytes) {
             spans.push_back({store, at, at + bytes});
           });
  return spans;
}

bool Overlap(const std::vector<Span>& some, const std::vector<Span>& others) {
  for (const Span& a : some) {
    for (const Span& b : others) {
      if (a.store == b.store && a.first < b.end && b.first < a.end) return true;
    }
  }
  return false;
}
bool ShareStores(const std::vector<Span>& some, const std::vector<Span>& others) {
  for (const Span& a : some) {
    for (const Span& b : others) {
      if (a.store == b.store) return true;
    }
  }
  return false;
}

// All of a memory.
Side Whole(Memory* memory) {
  const size_t pitch = memory->is_array() ? memory->width : memory->bytes();
  return {memory, 0, 0, 0, 0, pitch, std::max<size_t>(1, memory->height)};
}
Extent WholeExtent(const Memory& memory) {
  if (!memory.is_array()) return {memory.bytes()};
  return {memory.width, std::max<size_t>(1, memory.height), std::max<size_t>(1, memory.depth)};
}

class Random {
 public:
  explicit Random(unsigned seed) : random_(seed) {}

  size_t Below(size_t bound) { return random_() % bound; }
  bool OneOf(size_t many) { return Below(many) == 0; }
  size_t Aligned(size_t most, size_t step) { return Below(most / step + 1) * step; }
  size_t Between(size_t least, size_t most) { return least + Below(most - least + 1); }

  // Sizes that lie around the borders where copies take other ways.
  size_t Size(size_t most) {
    constexpr size_t kBorders[] = {512, 4 * kKiB, 64 * kKiB, 128 * kKiB, kMiB, 2 * kMiB, 4 * kMiB};
    const size_t which = Below(10);
    size_t size = Between(1, 600);
    if (which >= 4) size = kBorders[Below(5)] - 3 + Below(7);
    if (which == 7) size = kBorders[Below(7)] - 3 + Below(7);
    if (which == 8) size = Between(1, 300 * kKiB);
    if (which == 9) size = Between(1, OneOf(3) ? 5 * kMiB : kMiB);
    return size <= most ? size : Between(1, most);
  }
  Bytes SomeBytes(size_t count) {
    Bytes bytes(count);
    uint64_t state = random_() | uint64_t{1} << 40;
    for (size_t i = 0; i < count; ++i) {
      state ^= state << 13;
      state ^= state >> 7;
      state ^= state << 17;
      bytes[i] = static_cast<uint8_t>(state);
    }
    return bytes;
  }

 private:
  std::mt19937 random_;
};

}  // namespace
