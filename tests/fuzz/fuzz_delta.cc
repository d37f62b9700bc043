// What changed in mirrored memory: a delta of a range as long as the first two bytes say is applied
// to memory of just that size, and what came of it is encoded and applied again.
#include <algorithm>
#include <cstdlib>

#include "wire/page_delta.h"

using namespace longwire::wire;

namespace {

bool Apply(std::span<const std::byte> delta, std::vector<std::byte>* memory) {
  std::vector<DeltaRun> runs;
  bool good = ReadDelta(delta, memory->size(), &runs) == WireResult::kOk;
  for (const DeltaRun& run : runs) {
    std::ranges::copy(run.bytes, memory->begin() + static_cast<ptrdiff_t>(run.offset));
  }
  return good;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  std::vector<std::byte> memory(data[0] * size_t{256} + data[1] + 1);
  if (!Apply(std::as_bytes(std::span(data + 2, size - 2)), &memory)) return 0;
  std::vector<std::byte> shadow(memory.size()), other(memory.size()), delta;
  AppendDelta(memory, shadow.data(), 0, PageForm::kMasked, SIZE_MAX, &delta);
  if (!Apply(delta, &other) || other != memory || shadow != memory) std::abort();
  return 0;
}
