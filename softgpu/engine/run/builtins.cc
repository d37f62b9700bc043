#include "softgpu/engine/run/builtins.h"

#include <unistd.h>

#include <array>
#include <bit>
#include <cstdio>

#include "softgpu/engine/memory/device_heap.h"
#include "softgpu/engine/run/builtin_call.h"
#include "softgpu/engine/run/conditions.h"
#include "softgpu/engine/run/print_format.h"

namespace softgpu {
namespace {

void WriteAll(int descriptor, const std::string& text) {
  size_t done = 0;
  while (done < text.size()) {
    ssize_t n = write(descriptor, text.data() + done, text.size() - done);
    if (n <= 0) return;
    done += static_cast<size_t>(n);
  }
}

void Vprintf(Warp& w, const Instruction& i) {
  const Arena& arena = *w.arena;
  for (uint32_t m = w.exec; m != 0; m &= m - 1) {
    int lane = std::countr_zero(m);
    std::string text;
    int fields = FormatDevicePrint(arena, Argument<uint64_t>(w, i, lane, 0),
                                   Argument<uint64_t>(w, i, lane, 1), &text);
    if (fields < -1) return Fault(w, i, kIllegalAddress, "printf arguments at an illegal address");
    WriteAll(1, text);
    Result<uint32_t>(w, i, lane, static_cast<uint32_t>(fields));
  }
}

void Malloc(Warp& w, const Instruction& i) {
  for (uint32_t m = w.exec; m != 0; m &= m - 1) {
    int lane = std::countr_zero(m);
    uint64_t bytes = Argument<uint64_t>(w, i, lane, 0);
    Result(w, i, lane, w.block->launch->kernel->module->heap().Allocate(bytes));
  }
}

void Free(Warp& w, const Instruction& i) {
  for (uint32_t m = w.exec; m != 0; m &= m - 1) {
    uint64_t address = Argument<uint64_t>(w, i, std::countr_zero(m), 0);
    if (address != 0 && !w.block->launch->kernel->module->heap().Free(address)) {
      return Fault(w, i, kIllegalAddress, "free of an address that malloc did not return");
    }
  }
}

// __assertfail(message, file, line, function, character size)
void AssertFail(Warp& w, const Instruction& i) {
  const Block& block = *w.block;
  int lane = std::countr_zero(w.exec);
  const uint32_t* n = block.launch->config.block;
  uint32_t thread = w.index * kLanes + static_cast<uint32_t>(lane);
  char where[160];
  std::snprintf(where, sizeof where, ": block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `",
                block.index[0], block.index[1], block.index[2], thread % n[0], thread / n[0] % n[1],
                thread / n[0] / n[1]);
  const Arena& arena = *w.arena;
  std::string message = ReadDeviceString(arena, Argument<uint64_t>(w, i, lane, 0));
  std::string text = ReadDeviceString(arena, Argument<uint64_t>(w, i, lane, 1)) + ":" +
                     std::to_string(Argument<uint32_t>(w, i, lane, 2)) + ": " +
                     ReadDeviceString(arena, Argument<uint64_t>(w, i, lane, 3)) + where + message +
                     "` failed.\n";
  WriteAll(2, text);
  Fault(w, i, kAssert, "assertion `" + message + "` failed");
}

void SetConditional(Warp& w, const Instruction& i) {
  for (uint32_t m = w.exec; m != 0; m &= m - 1) {
    int lane = std::countr_zero(m);
    if (!SetCondition(Argument<uint64_t>(w, i, lane, 0), Argument<uint32_t>(w, i, lane, 1))) {
      return Fault(w, i, kIllegalAddress, "cudaGraphSetConditional of a handle that is none");
    }
  }
}

struct Builtin {
  std::string_view name;
  Handler handler;
};
constexpr std::array kBuiltins = {
    Builtin{"__assert_fail", AssertFail},
    Builtin{"__assertfail", AssertFail},
    Builtin{"cudaGraphSetConditional", SetConditional},
    Builtin{"free", Free},
    Builtin{"malloc", Malloc},
    Builtin{"vprintf", Vprintf},
};

}  // namespace

Handler FindBuiltin(std::string_view name) {
  for (const Builtin& builtin : kBuiltins) {
    if (builtin.name == name) return builtin.handler;
  }
  return FindDeviceRuntime(name);
}

}  // namespace softgpu
