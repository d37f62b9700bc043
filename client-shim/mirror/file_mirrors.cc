#include "client-shim/mirror/file_mirrors.h"

#include <algorithm>
#include <cstring>

#include "client-shim/support/own_memory.h"

namespace longwire::shim {
namespace {

// A state that others keep changing is taken as it is after this number of copies.
constexpr int kCopies = 64;

using FileMirrors = std::vector<Mirror*>;

FileMirrors AllThere(Mirrors& mirrors) LONGWIRE_REQUIRES(mirrors.mutex) {
  FileMirrors found;
  for (auto& [address, mirror] : mirrors.by_address) {
    if (mirror->lost) ReportGone(address);  // work that may use it is submitted
    if (mirror->range.may_shrink && IsThere(*mirror)) found.push_back(mirror.get());
  }
  return found;
}

bool Read(Mirror& mirror, std::vector<std::byte>* to) {
  to->resize(mirror.range.bytes);
  return ReadFileMemory(mirror.memory().data(), to->data(), to->size());
}

void Lose(Mirror& mirror) {
  mirror.vanished = mirror.lost = true;
  mirror.state.clear();
  ReportGone(mirror.range.address);
}

// One copy after the other; those that cannot be copied are lost.
void CopyAll(FileMirrors& all) {
  std::erase_if(all, [](Mirror* mirror) {
    mirror->state.swap(mirror->earlier);
    const bool read = Read(*mirror, &mirror->state);
    if (!read) Lose(*mirror);
    return !read;
  });
}

}  // namespace

// Two copies that are the same, the second one made after the first was complete: of any two words
// either may have been read first, so whoever sees a word in them sees what was written before it.
void TakeStates(Mirrors& mirrors) {
  FileMirrors all = AllThere(mirrors);
  if (all.empty()) return;
  CopyAll(all);
  const bool changed = std::ranges::any_of(all, [](const Mirror* mirror) {
    return std::memcmp(mirror->state.data(), mirror->shadow, mirror->state.size()) != 0;
  });
  if (!changed) return;
  for (int copies = 1; copies < kCopies; ++copies) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    CopyAll(all);
    if (std::ranges::all_of(
            all, [](const Mirror* mirror) { return mirror->state == mirror->earlier; })) {
      return;
    }
  }
}

std::span<const std::byte> NowOf(const Mirror& mirror) {
  return mirror.range.may_shrink ? std::span<const std::byte>(mirror.state) : mirror.memory();
}

void WriteMemory(Mirror& mirror, uint64_t offset, std::span<const std::byte> bytes) {
  auto* place = reinterpret_cast<std::byte*>(mirror.range.address + offset);
  if (!mirror.range.may_shrink) {
    std::memcpy(place, bytes.data(), bytes.size());
  } else if (!mirror.vanished && !WriteFileMemory(bytes.data(), place, bytes.size())) {
    Lose(mirror);
  }
}

void FindLost(Mirrors& mirrors) {
  std::vector<std::byte> copy;
  for (Mirror* mirror : AllThere(mirrors)) {
    if (!Read(*mirror, &copy)) Lose(*mirror);
  }
}

}  // namespace longwire::shim
