#include "client-shim/memory/allocation_trace.h"

#include <atomic>

#include "client-shim/connect/options.h"
#include "client-shim/tracing/recorder.h"

namespace longwire::shim {
namespace {

std::atomic<uint64_t> bytes_now{0};
std::atomic<uint64_t> pieces_now{0};

void Print(char sign, int device, uint64_t address, uint64_t bytes, uint64_t all, uint64_t pieces) {
  Say("%c %llu bytes at 0x%llx on device %d: %llu bytes in %llu pieces", sign,
      static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(address), device,
      static_cast<unsigned long long>(all), static_cast<unsigned long long>(pieces));
}

}  // namespace

void TraceAllocation(int device, uint64_t address, uint64_t bytes) {
  if (IsRecording()) TheRecorder().Memory(device, static_cast<int64_t>(bytes));
  if (!ProcessOptions().trace_allocations) return;
  uint64_t all = bytes_now.fetch_add(bytes) + bytes;
  Print('+', device, address, bytes, all, pieces_now.fetch_add(1) + 1);
}

void TraceFree(int device, uint64_t address, uint64_t bytes) {
  if (IsRecording()) TheRecorder().Memory(device, -static_cast<int64_t>(bytes));
  if (!ProcessOptions().trace_allocations) return;
  uint64_t all = bytes_now.fetch_sub(bytes) - bytes;
  Print('-', device, address, bytes, all, pieces_now.fetch_sub(1) - 1);
}

}  // namespace longwire::shim
