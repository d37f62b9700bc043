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

// The same with masked pages as they are.
bool ApplyPages(std::span<const std::byte> delta, std::vector<std::byte>* memory) {
  std::vector<DeltaRun> runs;
  bool good = ReadDelta(delta, memory->size(), &runs, MaskedAs::kPages) == WireResult::kOk;
  for (const DeltaRun& run : runs) {
    const auto place = memory->begin() + static_cast<ptrdiff_t>(run.offset);
    if (run.mask.empty()) std::ranges::copy(run.bytes, place);
    EachMaskedWord(run, [&](const MaskedWord& word) {
      for (size_t i = 0; i < 8; ++i) {
        if ((word.bits >> i & 1) != 0) place[static_cast<ptrdiff_t>(word.at + i)] = word.value[i];
      }
    });
  }
  return good;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  std::vector<std::byte> memory(data[0] * size_t{256} + data[1] + 1);
  std::vector<std::byte> by_pages(memory);
  const auto sent = std::as_bytes(std::span(data + 2, size - 2));
  const bool good = Apply(sent, &memory);
  if (ApplyPages(sent, &by_pages) != good || (good && by_pages != memory)) std::abort();
  if (!good) return 0;
  std::vector<std::byte> shadow(memory.size()), other(memory.size()), third(other), delta;
  AppendDelta(memory, shadow.data(), 0, PageForm::kMasked, SIZE_MAX, &delta);
  if (!Apply(delta, &other) || other != memory || shadow != memory) std::abort();
  if (!ApplyPages(delta, &third) || third != memory) std::abort();
  return 0;
}
