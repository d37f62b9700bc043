// The fills and the kernels of driver_memory_random.
#pragma once

#include "driver_memory_machine.h"

namespace {

class Fills {
 public:
  explicit Fills(Machine& machine) : machine_(machine), random_(machine.random) {}

  void Set(Memory* memory) {
    const size_t element = size_t{1} << random_.Below(3), all = memory->bytes() / element;
    if (all == 0) return;
    const uint64_t misplaced = memory->address % element;
    if (misplaced != 0) return;
    Extent extent{random_.Size(all) * element};
    Side side{memory};
    side.pitch = extent.width;
    side.height = 1;
    if (random_.OneOf(2)) {
      extent.width = random_.Between(1, std::min<size_t>(all, 700)) * element;
      const size_t most = all * element / extent.width;
      extent.rows = side.height = random_.Between(1, std::min<size_t>(most, 30));
      side.pitch = extent.width + random_.Below(20) * element;
      if (EndOf(side, extent) > all * element) side.pitch = extent.width;
    }
    side.base = random_.Aligned(memory->bytes() - EndOf(side, extent), element);
    Set(side, extent, element);
  }

  // A kernel reads some bytes and writes others.
  void Mix(Memory* to, Memory* from) {
    const size_t most = std::min({to->bytes(), from->bytes(), size_t{3000}});
    const Extent extent{random_.Between(1, most)};
    const unsigned count = static_cast<unsigned>(extent.width);
    const Side output_side{to, random_.Below(to->bytes() - count + 1), 0, 0, 0, count, 1};
    Side input_side{from, random_.Below(from->bytes() - count + 1), 0, 0, 0, count, 1};
    if (random_.OneOf(4)) input_side = output_side;
    const bool same = input_side.memory == to && input_side.base == output_side.base;
    const auto written = SpansOf(output_side, extent), read = SpansOf(input_side, extent);
    if (!same && Overlap(written, read)) return;
    unsigned reversed = !same && random_.OneOf(2),
             added = static_cast<unsigned>(random_.Below(256));
    const int lane = machine_.AnyLane(to->context);
    machine_.Use(lane, read, false);
    machine_.Use(lane, written, true);
    CUdeviceptr output = output_side.address(), input = input_side.address();
    void* arguments[] = {&output, &input, const_cast<unsigned*>(&count), &reversed, &added};
    CUstream stream = machine_.Enter(machine_.lane(lane));
    CHECK_DRIVER(cuLaunchKernel(machine_.context(to->context).mix, (count + 127) / 128, 1, 1, 128,
                                1, 1, 0, stream, arguments, nullptr));
    Bytes bytes = Read(input_side, extent);
    if (reversed != 0) std::reverse(bytes.begin(), bytes.end());
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(byte * 3U + added);
    Write(output_side, extent, bytes);
  }

 private:
  void Set(const Side& side, const Extent& extent, size_t element) {
    const int context = side.memory->context;
    const bool waits = random_.OneOf(2);
    const int lane = waits ? Machine::LegacyLane(context) : machine_.AnyLane(context);
    machine_.Use(lane, SpansOf(side, extent), true);
    CUstream stream = machine_.Enter(machine_.lane(lane));
    const CUdeviceptr to = side.address();
    const auto value = static_cast<unsigned>(random_.Below(size_t{1} << 32));
    const auto v16 = static_cast<unsigned short>(value);
    const auto v8 = static_cast<unsigned char>(value);
    const size_t width = extent.width / element, rows = extent.rows, pitch = side.pitch;
    const bool flat = rows == 1 && random_.OneOf(2);
    CUresult code = CUDA_SUCCESS;
    if (flat && element == 1) {
      code = waits ? cuMemsetD8(to, v8, width) : cuMemsetD8Async(to, v8, width, stream);
    } else if (flat && element == 2) {
      code = waits ? cuMemsetD16(to, v16, width) : cuMemsetD16Async(to, v16, width, stream);
    } else if (flat) {
      code = waits ? cuMemsetD32(to, value, width) : cuMemsetD32Async(to, value, width, stream);
    } else if (element == 1) {
      code = waits ? cuMemsetD2D8(to, pitch, v8, width, rows)
                   : cuMemsetD2D8Async(to, pitch, v8, width, rows, stream);
    } else if (element == 2) {
      code = waits ? cuMemsetD2D16(to, pitch, v16, width, rows)
                   : cuMemsetD2D16Async(to, pitch, v16, width, rows, stream);
    } else {
      code = waits ? cuMemsetD2D32(to, pitch, value, width, rows)
                   : cuMemsetD2D32Async(to, pitch, value, width, rows, stream);
    }
    CHECK_DRIVER(code);
    Bytes bytes(extent.bytes());
    for (size_t i = 0; i < bytes.size(); ++i) {
      bytes[i] = static_cast<uint8_t>(value >> (8 * (i % element)));
    }
    Write(side, extent, bytes);
  }

  Machine& machine_;
  Random& random_;
};

}  // namespace
