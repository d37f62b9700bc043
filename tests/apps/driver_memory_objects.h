// The memories of driver_memory_random: how they are made, mapped elsewhere and freed.
#pragma once

#include <cstdlib>

#include "driver_memory_machine.h"

namespace {

class Objects {
 public:
  explicit Objects(Machine& machine) : machine_(machine), random_(machine.random) {
    CUmemAllocationProp properties = Properties(0);
    CHECK_DRIVER(
        cuMemGetAllocationGranularity(&step_, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  }
  ~Objects() {
    while (!all_.empty()) Free(all_.size() - 1);
    for (const auto& physical : physicals_) CHECK_DRIVER(cuMemRelease(physical->handle));
  }
  Objects(const Objects&) = delete;

  size_t count() const { return all_.size(); }
  Memory* at(size_t which) const { return all_[which].get(); }
  template <class Fits>
  Memory* Any(const Fits& fits) {
    std::vector<Memory*> found;
    for (const auto& memory : all_) {
      if (fits(*memory)) found.push_back(memory.get());
    }
    return found.empty() ? nullptr : found[random_.Below(found.size())];
  }

  // Memory of any kind; what it holds is known.
  void Make() {
    const size_t which = random_.Below(16);
    if (which < 3) {
      Allocate(random_.Size(5 * kMiB), AnyContext());
    } else if (which == 3) {
      AllocatePitch();
    } else if (which < 7) {
      AllocateOrdered(random_.Size(5 * kMiB));
    } else if (which < 9) {
      Map();
    } else if (which < 11) {
      MakeArray();
    } else if (which == 11) {
      MakeLevels();
    } else {
      MakeHost(which == 12   ? Kind::kRegistered
               : which == 13 ? Kind::kPinned
                             : Kind::kPageable,
               random_.Size(5 * kMiB));
    }
  }
  Memory* Allocate(size_t bytes, int context) {
    Memory* memory = Add(Kind::kAllocated, bytes);
    memory->context = context;
    machine_.Enter(context);
    CHECK_DRIVER(cuMemAlloc(reinterpret_cast<CUdeviceptr*>(&memory->address), bytes));
    Fill(memory);
    return memory;
  }
  Memory* AllocateOrdered(size_t bytes) {
    Memory* memory = Add(Kind::kPooled, bytes);
    const int lane = machine_.AnyLane(memory->context);
    CUstream stream = machine_.Enter(machine_.lane(lane));
    auto* address = reinterpret_cast<CUdeviceptr*>(&memory->address);
    const size_t which = random_.Below(3);
    memory->pool = machine_.context(memory->context).pools[which == 2];
    if (which == 0) {
      CHECK_DRIVER(cuMemAllocAsync(address, bytes, stream));
    } else {
      CHECK_DRIVER(cuMemAllocFromPoolAsync(address, bytes, memory->pool, stream));
    }
    machine_.Use(lane, *memory->parts[0], true);
    Fill(memory);
    return memory;
  }

  void Free(const Memory* memory) {
    size_t which = 0;
    while (all_[which].get() != memory) ++which;
    Free(which);
  }
  void Free(size_t which) {
    Memory* memory = all_[which].get();
    machine_.Enter(memory->context);
    switch (memory->kind) {
      case Kind::kAllocated:
      case Kind::kPitched:
        // A free waits for earlier work by itself.
        if (random_.OneOf(2)) machine_.HostUse(*memory, true);
        machine_.Enter(memory->context);
        CHECK_DRIVER(cuMemFree(memory->address));
        break;
      case Kind::kPooled:
        FreeOrdered(*memory);
        break;
      case Kind::kMapped:
        Unmap(memory);
        break;
      default:
        machine_.HostUse(*memory, true);
        machine_.Enter(memory->context);
        FreeOther(memory);
    }
    all_.erase(all_.begin() + static_cast<ptrdiff_t>(which));
  }

  // Maps what is mapped there elsewhere; the bytes stay.
  void Move(Memory* memory) {
    const auto under = memory->under;
    std::vector<CUmemGenericAllocationHandle> handles;  // ours may be gone: the mapping has its own
    uint64_t address = memory->address;
    for (const auto& physical : under) {
      handles.emplace_back();
      CHECK_DRIVER(cuMemRetainAllocationHandle(&handles.back(), reinterpret_cast<void*>(address)));
      address += physical->store->bytes.size();
    }
    Unmap(memory);
    MapParts(memory, under, handles);
    for (const auto handle : handles) CHECK_DRIVER(cuMemRelease(handle));
  }
  // Physical memory that nobody maps any more is given back, or earlier: it stays while mapped.
  void ReleaseOne() {
    if (physicals_.empty()) return;
    const size_t which = random_.Below(physicals_.size());
    CHECK_DRIVER(cuMemRelease(physicals_[which]->handle));
    physicals_.erase(physicals_.begin() + static_cast<ptrdiff_t>(which));
  }

  void ChangePool() {
    CUmemoryPool pool = machine_.context(AnyContext()).pools[random_.Below(2)];
    if (random_.OneOf(2)) {
      CHECK_DRIVER(cuMemPoolTrimTo(pool, random_.OneOf(2) ? 0 : random_.Size(8 * kMiB)));
      return;
    }
    if (random_.OneOf(2)) {
      cuuint64_t threshold = random_.OneOf(2) ? 0 : random_.Size(64 * kMiB);
      CHECK_DRIVER(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
      return;
    }
    const CUmemPool_attribute flags[] = {CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES,
                                         CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC,
                                         CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES};
    const CUmemPool_attribute flag = flags[random_.Below(3)];
    int value = static_cast<int>(random_.Below(2)), found = -1;
    CHECK_DRIVER(cuMemPoolSetAttribute(pool, flag, &value));
    CHECK_DRIVER(cuMemPoolGetAttribute(pool, flag, &found));
    EXPECT(found == value, "a pool's flag is %d, not %d", found, value);
  }

 private:
  int AnyContext() {
    return static_cast<int>(random_.Below(static_cast<size_t>(machine_.context_count())));
  }
  Memory* Add(Kind kind, size_t bytes) {
    auto memory = std::make_unique<Memory>();
    memory->kind = kind;
    memory->number = next_++;
    memory->context = AnyContext();
    if (bytes != 0) memory->parts.push_back(std::make_shared<Store>(bytes));
    machine_.Enter(memory->context);
    all_.push_back(std::move(memory));
    return all_.back().get();
  }

  // New memory has any bytes: it gets known ones, from the program or of one value.
  void Fill(Memory* memory) {
    if (memory->is_linear_device() && random_.OneOf(2)) {
      FillRange(memory, 0, memory->bytes());
      return;
    }
    const Extent extent = WholeExtent(*memory);
    const Bytes bytes = random_.SomeBytes(extent.bytes());
    Write(Whole(memory), extent, bytes);
    if (memory->is_host()) {
      std::memcpy(reinterpret_cast<void*>(memory->address), bytes.data(), bytes.size());
      return;
    }
    const int lane = Machine::LegacyLane(memory->context);
    machine_.Use(lane, SpansOf(Whole(memory), extent), true);
    machine_.Enter(memory->context);
    if (!memory->is_array()) {
      CHECK_DRIVER(cuMemcpyHtoD(memory->address, bytes.data(), bytes.size()));
      return;
    }
    CUDA_MEMCPY3D copy{};
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = bytes.data();
    copy.srcPitch = extent.width;
    copy.srcHeight = extent.rows;
    copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    copy.dstArray = memory->array;
    copy.WidthInBytes = extent.width;
    copy.Height = extent.rows;
    copy.Depth = extent.slices;
    CHECK_DRIVER(cuMemcpy3D(&copy));
  }
  void FillRange(Memory* memory, size_t first, size_t bytes) {
    const int lane = machine_.AnyLane(memory->context);
    const auto value = static_cast<uint8_t>(random_.Below(256));
    const Side side{memory, first, 0, 0, 0, bytes, 1};
    machine_.Use(lane, SpansOf(side, {bytes}), true);
    CUstream stream = machine_.Enter(machine_.lane(lane));
    CHECK_DRIVER(cuMemsetD8Async(memory->address + first, value, bytes, stream));
    Write(side, {bytes}, Bytes(bytes, value));
  }

  void AllocatePitch() {
    const size_t width = random_.Between(1, 3000), rows = random_.Between(1, 40);
    Memory* memory = Add(Kind::kPitched, 0);
    size_t pitch = 0;
    CHECK_DRIVER(cuMemAllocPitch(reinterpret_cast<CUdeviceptr*>(&memory->address), &pitch, width,
                                 rows, 4U << random_.Below(3)));
    EXPECT(pitch >= width, "rows of %zu bytes have a pitch of %zu", width, pitch);
    memory->parts.push_back(std::make_shared<Store>(pitch * rows));
    Fill(memory);
  }
  void FreeOrdered(const Memory& memory) {
    if (random_.OneOf(8)) {
      machine_.HostUse(memory, true);
      machine_.Enter(memory.context);
      CHECK_DRIVER(cuMemFree(memory.address));
      return;
    }
    const int lane = machine_.AnyLane(memory.context);
    machine_.Use(lane, *memory.parts[0], true);
    CHECK_DRIVER(cuMemFreeAsync(memory.address, machine_.Enter(machine_.lane(lane))));
  }

  CUmemAllocationProp Properties(int context) const {
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, machine_.context(context).device};
    return properties;
  }
  std::shared_ptr<Physical> NewPhysical(int context) {
    auto physical = std::make_shared<Physical>();
    const size_t bytes = step_ * random_.Between(1, 2);
    const CUmemAllocationProp properties = Properties(context);
    CHECK_DRIVER(cuMemCreate(&physical->handle, bytes, &properties, 0));
    physical->context = context;
    physical->store = std::make_shared<Store>(bytes);
    physicals_.push_back(physical);
    return physical;
  }
  // One or two parts, new or mapped elsewhere already, side by side.
  void Map() {
    Memory* memory = Add(Kind::kMapped, 0);
    std::vector<std::shared_ptr<Physical>> under;
    for (const auto& physical : physicals_) {
      if (under.size() < 2 && physical->context == memory->context && random_.OneOf(2)) {
        under.push_back(physical);
      }
    }
    if (under.empty() || random_.OneOf(3)) under.push_back(NewPhysical(memory->context));
    std::vector<CUmemGenericAllocationHandle> handles;
    for (const auto& physical : under) handles.push_back(physical->handle);
    MapParts(memory, under, handles);
    size_t first = 0;
    for (const auto& physical : memory->under) {
      const size_t bytes = physical->store->bytes.size();
      if (!physical->known) FillRange(memory, first, bytes);
      physical->known = true;
      first += bytes;
    }
  }
  void MapParts(Memory* memory, const std::vector<std::shared_ptr<Physical>>& under,
                const std::vector<CUmemGenericAllocationHandle>& handles) {
    size_t bytes = 0, first = 0;
    for (const auto& physical : under) bytes += physical->store->bytes.size();
    auto* address = reinterpret_cast<CUdeviceptr*>(&memory->address);
    CHECK_DRIVER(cuMemAddressReserve(address, bytes, 0, 0, 0));
    for (size_t i = 0; i < under.size(); ++i) {
      const size_t size = under[i]->store->bytes.size();
      CHECK_DRIVER(cuMemMap(memory->address + first, size, 0, handles[i], 0));
      memory->parts.push_back(under[i]->store);
      memory->under.push_back(under[i]);
      first += size;
    }
    const CUmemAccessDesc access{Properties(memory->context).location,
                                 CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CHECK_DRIVER(cuMemSetAccess(memory->address, bytes, &access, 1));
  }
  void Unmap(Memory* memory) {
    machine_.HostUse(*memory, true);
    const size_t bytes = memory->bytes();
    CHECK_DRIVER(cuMemUnmap(memory->address, bytes));
    CHECK_DRIVER(cuMemAddressFree(memory->address, bytes));
    memory->parts.clear();
    memory->under.clear();
  }

  Memory* AddArray(size_t element, size_t width, size_t height, size_t depth) {
    Memory* memory =
        Add(Kind::kArray, width * std::max<size_t>(1, height) * std::max<size_t>(1, depth));
    memory->element = element;
    memory->width = width;
    memory->height = height;
    memory->depth = depth;
    return memory;
  }
  CUDA_ARRAY3D_DESCRIPTOR Shape() {
    constexpr CUarray_format kFormats[] = {CU_AD_FORMAT_UNSIGNED_INT8, CU_AD_FORMAT_HALF,
                                           CU_AD_FORMAT_FLOAT};
    CUDA_ARRAY3D_DESCRIPTOR shape{};
    const size_t format = random_.Below(3);
    shape.Format = kFormats[format];
    shape.NumChannels = 1U << random_.Below(3);
    shape.Width = random_.Between(1, 200);
    if (!random_.OneOf(4)) shape.Height = random_.Between(1, 60);
    if (shape.Height != 0 && random_.OneOf(2)) shape.Depth = random_.Between(1, 8);
    if (shape.Depth != 0 && random_.OneOf(3)) shape.Flags = CUDA_ARRAY3D_LAYERED;
    return shape;
  }
  static size_t ElementOf(const CUDA_ARRAY3D_DESCRIPTOR& shape) {
    const size_t channel = shape.Format == CU_AD_FORMAT_UNSIGNED_INT8 ? 1
                           : shape.Format == CU_AD_FORMAT_HALF        ? 2
                                                                      : 4;
    return channel * shape.NumChannels;
  }
  void MakeArray() {
    const CUDA_ARRAY3D_DESCRIPTOR shape = Shape();
    const size_t element = ElementOf(shape);
    Memory* memory = AddArray(element, shape.Width * element, shape.Height, shape.Depth);
    if (shape.Depth == 0 && random_.OneOf(2)) {
      const CUDA_ARRAY_DESCRIPTOR flat{shape.Width, shape.Height, shape.Format, shape.NumChannels};
      CHECK_DRIVER(cuArrayCreate(&memory->array, &flat));
    } else {
      CHECK_DRIVER(cuArray3DCreate(&memory->array, &shape));
    }
    Fill(memory);
  }
  // Each level is an array; the last one that goes takes all with it.
  void MakeLevels() {
    CUDA_ARRAY3D_DESCRIPTOR shape = Shape();
    shape.Flags = 0;
    const size_t element = ElementOf(shape);
    const int context = AnyContext();
    machine_.Enter(context);
    CUmipmappedArray handle = nullptr;
    CHECK_DRIVER(cuMipmappedArrayCreate(&handle, &shape, 2));
    const std::shared_ptr<CUmipmappedArray_st> levels(handle,
                                                      [this, context](CUmipmappedArray gone) {
                                                        machine_.Enter(context);
                                                        CHECK_DRIVER(cuMipmappedArrayDestroy(gone));
                                                      });
    for (unsigned level = 0; level < 2; ++level) {
      const auto half = [&](size_t size) {
        return level == 0 || size == 0 ? size : std::max<size_t>(1, size / 2);
      };
      Memory* memory =
          AddArray(element, half(shape.Width) * element, half(shape.Height), half(shape.Depth));
      memory->context = context;
      memory->levels = levels;
      machine_.Enter(context);
      CHECK_DRIVER(cuMipmappedArrayGetLevel(&memory->array, handle, level));
      Fill(memory);
      if (shape.Width == 1 && shape.Height <= 1 && shape.Depth <= 1) break;
    }
  }

  void MakeHost(Kind kind, size_t bytes) {
    Memory* memory = Add(kind, bytes);
    const size_t shift = kind == Kind::kPageable ? random_.Below(64) : 0;
    if (kind == Kind::kPinned) {
      CHECK_DRIVER(
          cuMemHostAlloc(&memory->base, bytes, random_.OneOf(2) ? CU_MEMHOSTALLOC_PORTABLE : 0));
    } else {
      constexpr size_t kPage = 4096;  // what is registered has its pages for itself
      memory->base = kind == Kind::kPageable
                         ? std::malloc(bytes + shift)
                         : std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage);
    }
    memory->address = reinterpret_cast<uint64_t>(memory->base) + shift;
    if (kind == Kind::kRegistered) {
      CHECK_DRIVER(cuMemHostRegister(memory->base, bytes, CU_MEMHOSTREGISTER_PORTABLE));
    }
    Fill(memory);
  }
  static void FreeOther(Memory* memory) {
    if (memory->is_array()) {
      if (memory->levels == nullptr) CHECK_DRIVER(cuArrayDestroy(memory->array));
    } else if (memory->kind == Kind::kPinned) {
      CHECK_DRIVER(cuMemFreeHost(memory->base));
    } else {
      if (memory->kind == Kind::kRegistered) CHECK_DRIVER(cuMemHostUnregister(memory->base));
      std::free(memory->base);
    }
  }

  Machine& machine_;
  Random& random_;
  size_t step_ = 0;
  int next_ = 0;
  std::vector<std::unique_ptr<Memory>> all_;
  std::vector<std::shared_ptr<Physical>> physicals_;  // those whose handles we have
};

}  // namespace
