#include "client-shim/mirror/look_choice.h"

#include <algorithm>
#include <map>

#include "client-shim/mirror/mirror_table.h"
#include "wire/limits.h"

namespace longwire::shim {
namespace {

constexpr size_t kPartsAtOnce =
    std::min<size_t>(wire::kLookMirrors, wire::kLookBytes / LookChoice::kPartBytes);
// Of these, what may have changed before; the others come in turn.
constexpr size_t kRecentParts = kPartsAtOnce * 3 / 4;

// Parts begin at aligned words.
MirrorPart PartOf(Mirror* mirror, uint64_t number) {
  const MirrorRange& range = mirror->range;
  const auto begin = [&](uint64_t part) {
    const uint64_t offset = part * LookChoice::kPartBytes;
    return std::min(range.bytes, offset == 0 ? 0 : offset - range.address % 8);
  };
  return {mirror, begin(number), begin(number + 1) - begin(number)};
}

}  // namespace

std::vector<MirrorPart> LookChoice::Choose(std::span<Mirror* const> mirrors) {
  std::vector<MirrorPart> parts;
  uint64_t bytes = 0;
  std::map<uint64_t, Mirror*> by_id;
  for (Mirror* mirror : mirrors) {
    parts.push_back({mirror, 0, mirror->range.bytes});
    bytes += mirror->range.bytes;
    by_id[mirror->id] = mirror;
  }
  if (bytes <= wire::kLookBytes && parts.size() <= wire::kLookMirrors) return parts;
  std::erase_if(recent_, [&](const Part& part) {
    const auto found = by_id.find(part.first);
    return found == by_id.end() || part.second * kPartBytes >= found->second->range.bytes;
  });
  std::vector<Part> chosen = recent_;
  auto turn = by_id.lower_bound(next_.first);
  uint64_t number = turn != by_id.end() && turn->first == next_.first ? next_.second : 0;
  // There are more parts than are chosen, so this ends.
  while (chosen.size() < kPartsAtOnce) {
    if (turn == by_id.end()) turn = by_id.begin();
    if (number * kPartBytes >= turn->second->range.bytes) {
      ++turn;
      number = 0;
      continue;
    }
    const Part part{turn->first, number++};
    if (std::ranges::find(chosen, part) == chosen.end()) chosen.push_back(part);
  }
  next_ = {turn->first, number};
  // By address, as words are read.
  parts.clear();
  for (const Part& part : chosen) parts.push_back(PartOf(by_id[part.first], part.second));
  std::ranges::sort(
      parts, {}, [](const MirrorPart& part) { return part.mirror->range.address + part.offset; });
  return parts;
}

void LookChoice::Note(uint64_t mirror, uint64_t offset) {
  const Part part{mirror, offset / kPartBytes};
  std::erase(recent_, part);
  recent_.insert(recent_.begin(), part);
  if (recent_.size() > kRecentParts) recent_.pop_back();
}

}  // namespace longwire::shim
