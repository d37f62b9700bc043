// The copies of driver_memory_random: which ones may be made between two boxes, in which lane, and
// what they do to the model.
#pragma once

#include "driver_memory_machine.h"

namespace {

struct Copy {
  Side to, from;
  Extent extent;

  std::vector<Span> written() const { return SpansOf(to, extent); }
  std::vector<Span> read() const { return SpansOf(from, extent); }
  bool is_linear() const {
    return extent.rows * extent.slices == 1 && !to.memory->is_array() && !from.memory->is_array();
  }
  bool is_in_host() const { return to.memory->is_host() && from.memory->is_host(); }
};

// What the structs for 2D and 3D copies call the two sides.
template <class Struct>
void SetSides2D(const Copy& copy, bool unified, Struct* it) {
  const auto kind = [&](const Side& side) {
    return side.memory->is_array()  ? CU_MEMORYTYPE_ARRAY
           : unified                ? CU_MEMORYTYPE_UNIFIED
           : side.memory->is_host() ? CU_MEMORYTYPE_HOST
                                    : CU_MEMORYTYPE_DEVICE;
  };
  it->srcMemoryType = kind(copy.from);
  it->srcHost = reinterpret_cast<const void*>(copy.from.address());
  it->srcDevice = copy.from.address();
  it->srcArray = copy.from.memory->array;
  it->srcXInBytes = copy.from.x;
  it->srcY = copy.from.y;
  it->srcPitch = copy.from.pitch;
  it->dstMemoryType = kind(copy.to);
  it->dstHost = reinterpret_cast<void*>(copy.to.address());
  it->dstDevice = copy.to.address();
  it->dstArray = copy.to.memory->array;
  it->dstXInBytes = copy.to.x;
  it->dstY = copy.to.y;
  it->dstPitch = copy.to.pitch;
  it->WidthInBytes = copy.extent.width;
  it->Height = copy.extent.rows;
}
template <class Struct>
void SetSides3D(const Copy& copy, bool unified, Struct* it) {
  SetSides2D(copy, unified, it);
  it->srcZ = copy.from.z;
  it->srcHeight = copy.from.height;
  it->dstZ = copy.to.z;
  it->dstHeight = copy.to.height;
  it->Depth = copy.extent.slices;
}

class Copies {
 public:
  explicit Copies(Machine& machine) : machine_(machine), random_(machine.random) {}

  // A box of this size somewhere in the memory, in which it fits.
  Side Place(Memory* memory, const Extent& extent) {
    Side side{memory};
    if (memory->is_array()) {
      side.x = random_.Aligned(memory->width - extent.width, memory->element);
      side.y = random_.Below(std::max<size_t>(1, memory->height) - extent.rows + 1);
      side.z = random_.Below(std::max<size_t>(1, memory->depth) - extent.slices + 1);
      side.pitch = memory->width;
      side.height = std::max<size_t>(1, memory->height);
      return side;
    }
    const size_t all = memory->bytes();
    side.pitch = extent.width;
    side.height = extent.rows;
    for (int tries = 0; tries < 4; ++tries) {  // to spread it out
      Side wider = side;
      wider.x = random_.OneOf(2) ? 0 : random_.Below(40);
      wider.y = random_.OneOf(2) ? 0 : random_.Below(3);
      wider.z = random_.OneOf(2) || extent.slices == 1 ? 0 : random_.Below(2);
      wider.pitch += wider.x + (random_.OneOf(2) ? 0 : random_.Below(100));
      wider.height += wider.y + (random_.OneOf(2) ? 0 : random_.Below(3));
      if (EndOf(wider, extent) <= all) side = wider;
    }
    const size_t most = all - EndOf(side, extent);
    side.base = random_.OneOf(4) ? 0 : random_.OneOf(4) ? most : random_.Below(most + 1);
    return side;
  }
  // Some size that both memories have room for.
  Extent Choose(const Memory& to, const Memory& from) {
    if (!to.is_array() && !from.is_array()) {
      const size_t most = std::min(to.bytes(), from.bytes());
      if (random_.OneOf(2)) return {random_.Size(most)};
      Extent extent{random_.Between(1, std::min<size_t>(most, 3000))};
      extent.rows = random_.Between(1, std::min<size_t>(most / extent.width, 40));
      if (random_.OneOf(2)) {
        extent.slices =
            random_.Between(1, std::min<size_t>(most / (extent.width * extent.rows), 6));
      }
      return extent;
    }
    const Memory& array = to.is_array() ? to : from;
    const Extent all = WholeExtent(array);
    const size_t most = std::min(to.bytes(), from.bytes());
    Extent extent;
    const Extent other = to.is_array() && from.is_array() ? WholeExtent(from) : all;
    const size_t widest = std::min({all.width, other.width, most / array.element * array.element});
    if (widest == 0) return extent;
    extent.width = random_.Between(1, widest / array.element) * array.element;
    extent.rows = random_.Between(1, std::min({all.rows, other.rows, most / extent.width}));
    extent.slices = random_.Between(
        1, std::min({all.slices, other.slices, most / (extent.width * extent.rows)}));
    return extent;
  }

  // False if there is no such copy.
  bool Make(Memory* to, Memory* from) {
    if (to->is_array() && from->is_array() && to->element != from->element) return false;
    Copy copy;
    copy.extent = Choose(*to, *from);
    if (copy.extent.width == 0) return false;
    copy.to = Place(to, copy.extent);
    copy.from = Place(from, copy.extent);
    if (Overlap(copy.written(), copy.read()) || IsOddSlices(copy)) return false;
    Issue(copy);
    return true;
  }

  // A program may do with its memory what it likes as soon as the copy is done with it.
  void Scribble(Memory* memory) {
    machine_.HostUse(*memory, true);
    const size_t bytes = random_.Between(1, memory->bytes());
    const Side side{memory, random_.Below(memory->bytes() - bytes + 1), 0, 0, 0, bytes, 1};
    const Bytes other(bytes, static_cast<uint8_t>(random_.Below(256)));
    std::memcpy(reinterpret_cast<void*>(side.address()), other.data(), bytes);
    Write(side, {bytes}, other);
  }

  // Several linear copies at once, none of which writes what another one uses.
  template <class Next>
  void Batch(const Next& next) {
    std::vector<Copy> copies;
    for (int tries = 0; tries < 5; ++tries) {
      Copy copy;
      Memory *to = next(), *from = next();
      if (to == nullptr || from == nullptr) return;
      copy.extent = {random_.Size(std::min(to->bytes(), from->bytes()))};
      copy.to = Place(to, copy.extent);
      copy.from = Place(from, copy.extent);
      if (FitsBatch(copies, copy)) copies.push_back(copy);
    }
    if (!copies.empty()) IssueBatch(copies);
  }

  void Issue(const Copy& copy) {
    const bool across = AreAcross(copy);
    const bool line = IsOfLine(copy) && random_.OneOf(2);
    const Memory& device = copy.to.memory->is_host() ? *copy.from.memory : *copy.to.memory;
    const Memory& chosen = across && random_.OneOf(2) ? *copy.from.memory : device;
    const int context = machine_.AnyContext(machine_.DeviceOf(chosen));
    const bool waits = line || random_.OneOf(2);
    const int lane = waits ? Machine::LegacyLane(context) : machine_.AnyLane(context);
    Order(copy, lane);
    CUstream stream = machine_.Enter(machine_.lane(lane));
    const bool peer =
        across || (!copy.to.memory->is_host() && !copy.from.memory->is_host() && random_.OneOf(6));
    if (line) {
      IssueOfLine(copy);
    } else if (copy.is_linear() && !random_.OneOf(3)) {
      IssueLinear(copy, waits, stream, peer);
    } else {
      IssueBox(copy, waits, stream, peer);
    }
    Write(copy.to, copy.extent, Read(copy.from, copy.extent));
    if (waits) NoteReturn(copy, lane);
    if (copy.from.memory->is_host() && random_.OneOf(4)) Scribble(copy.from.memory);
  }

 private:
  // Slices between an array and memory of the device of which rows are not aligned: on an H200
  // cuMemcpy3D itself put some of the rows elsewhere.
  static bool IsOddSlices(const Copy& copy) {
    const auto is_odd = [](const Side& side, const Side& other) {
      return other.memory->is_array() && !side.memory->is_array() && !side.memory->is_host() &&
             (side.address() + side.x) % 16 + side.pitch % 16 != 0;
    };
    return copy.extent.slices > 1 && (is_odd(copy.to, copy.from) || is_odd(copy.from, copy.to));
  }
  bool AreAcross(const Copy& copy) const {
    return !copy.to.memory->is_host() && !copy.from.memory->is_host() &&
           machine_.DeviceOf(*copy.to.memory) != machine_.DeviceOf(*copy.from.memory);
  }
  // Of a one-dimensional array, for the forms that know no other ones.
  bool IsOfLine(const Copy& copy) const {
    const Memory &to = *copy.to.memory, &from = *copy.from.memory;
    const auto fits = [](const Memory& memory) { return !memory.is_array() || memory.height == 0; };
    return copy.extent.rows * copy.extent.slices == 1 && (to.is_array() || from.is_array()) &&
           fits(to) && fits(from) && !AreAcross(copy);
  }

  // Copies of pageable memory are done with it when they return, and within the program's memory
  // with both sides.
  static bool IsAtOnce(const Copy& copy, const Side& side) {
    return side.memory->kind == Kind::kPageable || copy.is_in_host();
  }
  void Order(const Copy& copy, int lane) {
    for (const Side* side : {&copy.from, &copy.to}) {
      const bool writes = side == &copy.to;
      if (IsAtOnce(copy, *side)) {
        machine_.HostUse(*side->memory, writes);
      } else {
        machine_.Use(lane, SpansOf(*side, copy.extent), writes);
      }
    }
  }
  static void NoteReturn(const Copy& copy, int lane) {
    for (const Side* side : {&copy.from, &copy.to}) {
      if (!side->memory->is_host() || IsAtOnce(copy, *side)) continue;
      Machine::NoteEnd(lane, *side->memory->parts[0], side == &copy.to);
    }
  }

  void IssueLinear(const Copy& copy, bool waits, CUstream stream, bool peer) {
    // The kinds of copies that have addresses alone begin where the box does.
    const CUdeviceptr to = copy.to.memory->address + copy.to.Offset(0, 0);
    const CUdeviceptr from = copy.from.memory->address + copy.from.Offset(0, 0);
    const size_t bytes = copy.extent.width;
    auto* host_to = reinterpret_cast<void*>(to);
    const auto* host_from = reinterpret_cast<const void*>(from);
    if (peer) {
      CUcontext of_to = machine_.context(copy.to.memory->context).handle;
      CUcontext of_from = machine_.context(copy.from.memory->context).handle;
      CHECK_DRIVER(waits ? cuMemcpyPeer(to, of_to, from, of_from, bytes)
                         : cuMemcpyPeerAsync(to, of_to, from, of_from, bytes, stream));
    } else if (copy.is_in_host() || random_.OneOf(3)) {
      CHECK_DRIVER(waits ? cuMemcpy(to, from, bytes) : cuMemcpyAsync(to, from, bytes, stream));
    } else if (copy.to.memory->is_host()) {
      CHECK_DRIVER(waits ? cuMemcpyDtoH(host_to, from, bytes)
                         : cuMemcpyDtoHAsync(host_to, from, bytes, stream));
    } else if (copy.from.memory->is_host()) {
      CHECK_DRIVER(waits ? cuMemcpyHtoD(to, host_from, bytes)
                         : cuMemcpyHtoDAsync(to, host_from, bytes, stream));
    } else {
      CHECK_DRIVER(waits ? cuMemcpyDtoD(to, from, bytes)
                         : cuMemcpyDtoDAsync(to, from, bytes, stream));
    }
  }
  void IssueOfLine(const Copy& copy) {
    const Memory &to = *copy.to.memory, &from = *copy.from.memory;
    const size_t to_offset = copy.to.Offset(0, 0), from_offset = copy.from.Offset(0, 0);
    const uint64_t to_address = to.address + to_offset, from_address = from.address + from_offset;
    const size_t bytes = copy.extent.width;
    if (to.is_array() && from.is_array()) {
      CHECK_DRIVER(cuMemcpyAtoA(to.array, to_offset, from.array, from_offset, bytes));
    } else if (to.is_array() && from.is_host()) {
      CHECK_DRIVER(
          cuMemcpyHtoA(to.array, to_offset, reinterpret_cast<const void*>(from_address), bytes));
    } else if (to.is_array()) {
      CHECK_DRIVER(cuMemcpyDtoA(to.array, to_offset, from_address, bytes));
    } else if (to.is_host()) {
      CHECK_DRIVER(
          cuMemcpyAtoH(reinterpret_cast<void*>(to_address), from.array, from_offset, bytes));
    } else {
      CHECK_DRIVER(cuMemcpyAtoD(to_address, from.array, from_offset, bytes));
    }
  }
  void IssueBox(const Copy& copy, bool waits, CUstream stream, bool peer) {
    const bool unified = random_.OneOf(4);
    const bool flat = copy.extent.slices == 1 && copy.to.z == 0 && copy.from.z == 0 &&
                      copy.to.memory->depth == 0 && copy.from.memory->depth == 0;
    if (peer) {
      CUDA_MEMCPY3D_PEER box{};
      SetSides3D(copy, unified, &box);
      box.srcContext = machine_.context(copy.from.memory->context).handle;
      box.dstContext = machine_.context(copy.to.memory->context).handle;
      CHECK_DRIVER(waits ? cuMemcpy3DPeer(&box) : cuMemcpy3DPeerAsync(&box, stream));
    } else if (flat && random_.OneOf(2)) {
      CUDA_MEMCPY2D plane{};
      SetSides2D(copy, unified, &plane);
      if (!waits) {
        CHECK_DRIVER(cuMemcpy2DAsync(&plane, stream));
      } else {
        CHECK_DRIVER(random_.OneOf(2) ? cuMemcpy2D(&plane) : cuMemcpy2DUnaligned(&plane));
      }
    } else {
      CUDA_MEMCPY3D box{};
      SetSides3D(copy, unified, &box);
      CHECK_DRIVER(waits ? cuMemcpy3D(&box) : cuMemcpy3DAsync(&box, stream));
    }
  }

  bool FitsBatch(const std::vector<Copy>& copies, const Copy& copy) const {
    if (ShareStores(copy.written(), copy.read()) || copy.is_in_host()) return false;
    if (AreAcross(copy)) return false;
    for (const Copy& other : copies) {
      if (ShareStores(copy.written(), other.written()) ||
          ShareStores(copy.written(), other.read()) || ShareStores(copy.read(), other.written()) ||
          machine_.DeviceOf(DeviceSide(copy)) != machine_.DeviceOf(DeviceSide(other))) {
        return false;
      }
    }
    return true;
  }
  static const Memory& DeviceSide(const Copy& copy) {
    return copy.to.memory->is_host() ? *copy.from.memory : *copy.to.memory;
  }
  void IssueBatch(const std::vector<Copy>& copies) {
    const int context = machine_.AnyContext(machine_.DeviceOf(DeviceSide(copies[0])));
    const int lane = Machine::LegacyLane(context) + static_cast<int>(random_.Between(1, 4));
    const bool at_once = random_.OneOf(2);
    std::vector<CUdeviceptr> to, from;
    std::vector<size_t> sizes;
    for (const Copy& copy : copies) {
      to.push_back(copy.to.memory->address + copy.to.Offset(0, 0));
      from.push_back(copy.from.memory->address + copy.from.Offset(0, 0));
      sizes.push_back(copy.extent.width);
      // What is read during the call is not read in the stream's order.
      if (at_once && copy.from.memory->is_host()) machine_.HostUse(*copy.from.memory, false);
      machine_.Use(lane, copy.read(), false);
      machine_.Use(lane, copy.written(), true);
    }
    CUmemcpyAttributes attributes{};
    attributes.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
    if (at_once) attributes.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL;
    size_t first = 0;
    // Sources on the device are ready only in the stream's order.
    for (const Copy& copy : copies) {
      if (at_once && !copy.from.memory->is_host()) machine_.HostUse(*copy.from.memory, false);
    }
    CUstream stream = machine_.Enter(machine_.lane(lane));
    CHECK_DRIVER(cuMemcpyBatchAsync(to.data(), from.data(), sizes.data(), sizes.size(), &attributes,
                                    &first, 1, stream));
    for (const Copy& copy : copies) {
      Write(copy.to, copy.extent, Read(copy.from, copy.extent));
    }
    for (const Copy& copy : copies) {
      if (!at_once || !copy.from.memory->is_host()) continue;
      Machine::NoteEnd(lane, *copy.from.memory->parts[0], false);
      if (random_.OneOf(2)) Scribble(copy.from.memory);
    }
  }

  Machine& machine_;
  Random& random_;
};

}  // namespace
