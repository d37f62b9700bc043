#include "softgpu/engine/texture/tensor_copy.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "softgpu/engine/run/cluster_memory.h"

namespace softgpu {
namespace {

constexpr uint32_t kPiece = 16;  // bytes that stay together wherever they are swizzled
constexpr uint64_t kAlignment = 128;

struct Copy {
  Warp& w;
  const Instruction& instruction;
  const TensorSite& site;
  int lane;
  bool loads;
  TensorMap map = {};
  int64_t first[kMaxDimensions] = {};
  uint64_t shared = 0;  // offset in shared memory
  uint64_t base = 0;    // where that begins

  bool Fail(int code, const char* what) const {
    Fault(w, instruction, code, what);
    return false;
  }
  bool ReadMap();
  bool CheckPlace() const;
  uint64_t Bytes() const;
  bool FindShared();
  bool CopyRow(const uint32_t* at, uint64_t offset) const;
  bool Run();
};

bool Copy::ReadMap() {
  uint64_t address = w.Reg<uint64_t>(site.map)[lane] + static_cast<uint64_t>(site.map_offset);
  if (!w.arena->Allows(address, sizeof(map), w.device) &&
      !w.private_memory->Contains(address, sizeof(map))) {
    return Fail(kIllegalAddress, "a tensor map at an illegal address");
  }
  std::memcpy(&map, reinterpret_cast<const void*>(address), sizeof(map));
  if (map.kind != TensorMap::kTiled || map.rank != site.rank) {
    return Fail(kIllegalInstruction, "no tiled tensor map of this rank");
  }
  if (!map.copies) {
    return Fail(kNotSupported,
                "the software device does not copy by interleaved tensors, packed "
                "elements, element strides or swizzles of other atoms");
  }
  for (uint32_t i = 0; i < site.rank; ++i) {
    first[i] = w.Reg<int32_t>(site.coordinates[i])[lane];
  }
  return CheckPlace();
}

// What the H200 refuses; wherever else a box lies, what is outside the tensor reads as zeros and is
// not written.
bool Copy::CheckPlace() const {
  if (first[0] * (map.element_bits / 8) % kPiece != 0) {
    return Fail(kIllegalInstruction, "a tensor's box does not start at a multiple of 16 bytes");
  }
  if (!loads && std::any_of(first, first + map.rank, [](int64_t place) { return place < 0; })) {
    return Fail(kIllegalInstruction, "a box is stored before its tensor's beginning");
  }
  return true;
}

uint64_t Copy::Bytes() const {
  uint64_t bytes = map.element_bits / 8;
  for (uint32_t i = 0; i < map.rank; ++i) bytes *= map.box[i];
  return bytes;
}

bool Copy::FindShared() {
  shared = static_cast<uint32_t>(w.Reg<uint32_t>(site.shared)[lane] + site.shared_offset);
  uint64_t bytes = Bytes();
  base = SharedBaseOf(w, shared);
  shared &= kOffsetMask;
  if (shared % kAlignment != 0) {
    return Fail(kMisalignedAddress, "a tensor's box is not at a multiple of 128 bytes");
  }
  if (base == 0) return Fail(kIllegalAddress, "a tensor's box in a block that does not exist");
  bool inside = shared <= w.shared_bytes && bytes <= w.shared_bytes - shared;
  return inside || Fail(kIllegalAddress, "a tensor's box reaches beyond shared memory");
}

// One row of the box, `at` its other coordinates and `offset` its place in the box.
bool Copy::CopyRow(const uint32_t* at, uint64_t offset) const {
  const uint32_t element = map.element_bits / 8;
  bool inside = true;
  int64_t start = 0;  // of the tensor's row; nothing is read there unless it is inside
  for (uint32_t i = 1; i < map.rank; ++i) {
    int64_t place = first[i] + at[i];
    inside &= place >= 0 && place <= int64_t{map.dimensions[i]};
    start += place * static_cast<int64_t>(map.strides[i - 1]);
  }
  const uint64_t nan = ~uint64_t{0} >> (65 - map.element_bits);
  const uint64_t outside = map.fill != 0 ? nan : 0;
  for (uint32_t i = 0; i < map.box[0]; ++i) {
    uint64_t to = shared + offset + i * element;
    to ^= (to >> 7 & ((1u << map.swizzle_bits) - 1)) * kPiece;
    auto* near = reinterpret_cast<void*>(base + to);
    int64_t place = first[0] + i;
    if (!inside || place < 0 || place > int64_t{map.dimensions[0]}) {
      if (loads) std::memcpy(near, &outside, element);
      continue;
    }
    uint64_t address = map.address + static_cast<uint64_t>(start + place * element);
    if (!w.arena->Allows(address, element, w.device)) {
      return Fail(kIllegalAddress, "a tensor's memory is not mapped");
    }
    auto* far = reinterpret_cast<void*>(address);
    std::memcpy(loads ? near : far, loads ? far : near, element);
  }
  return true;
}

bool Copy::Run() {
  if (!ReadMap() || !FindShared()) return false;
  const uint64_t row = uint64_t{map.box[0]} * map.element_bits / 8;
  const uint64_t bytes = Bytes();
  uint32_t at[kMaxDimensions] = {};
  for (uint64_t offset = 0; offset < bytes; offset += row) {
    if (!CopyRow(at, offset)) return false;
    for (uint32_t i = 1; i < map.rank && ++at[i] == map.box[i]; ++i) at[i] = 0;
  }
  if (loads) w.Reg<uint32_t>(site.bytes)[lane] = static_cast<uint32_t>(bytes);
  return true;
}

void RunAll(Warp& w, const Instruction& instruction, bool loads) {
  const auto& site = *static_cast<const TensorSite*>(instruction.data);
  for (uint32_t m = w.exec; m != 0; m &= m - 1) {
    if (!Copy{w, instruction, site, std::countr_zero(m), loads}.Run()) return;
  }
}

}  // namespace

void LoadTensor(Warp& w, const Instruction& instruction) { RunAll(w, instruction, true); }
void StoreTensor(Warp& w, const Instruction& instruction) { RunAll(w, instruction, false); }

}  // namespace softgpu
