#include "server/worker/states/whole_state.h"

#include <algorithm>

#include "wire/live/mirror_state.h"

namespace longwire::worker {
namespace {

constexpr uint64_t kWordBytes = 8;
constexpr size_t kWordsOfStoredBlock = StoredBlock::kBytes / kWordBytes;
// As many full blocks as a kernel stores well within a turn: 32 MiB. Others cost it as much as
// three.
constexpr uint64_t kBlocksInATurn = wire::kStateBytes / StoredBlock::kBytes;
constexpr uint64_t kCostOfOthers = 3;

void AddRun(uint64_t address, std::span<const std::byte> bytes, std::vector<StoredWord>* words) {
  for (size_t at = 0; at < bytes.size();) {
    const uint64_t place = address + at, first = place % kWordBytes;
    const size_t count = std::min<uint64_t>(kWordBytes - first, bytes.size() - at);
    StoredWord word;
    const uint64_t mask = ((uint64_t{1} << count) - 1) << first;
    word.place = (place - first) | mask << StoredWord::kAddressBits;
    std::ranges::copy(bytes.subspan(at, count), word.now.begin() + static_cast<ptrdiff_t>(first));
    words->push_back(word);
    at += count;
  }
}

// Calls each(shadow's byte, index) for the changed bytes of the word.
template <class Each>
void EachByte(const Mirror& mirror, const StoredWord& word, Each each) {
  for (size_t i = 0; i < kWordBytes; ++i) {
    if ((word.mask() >> i & 1) == 0) continue;
    each(mirror.shadow->data()[word.address() + i - mirror.address], i);
  }
}

}  // namespace

bool WholeState::Add(const std::shared_ptr<Mirror>& mirror, const std::vector<wire::DeltaRun>& runs,
                     uint64_t bytes) {
  uint64_t most = 0;  // words
  for (const wire::DeltaRun& run : runs) most += run.bytes.size() / kWordBytes + 2;
  if (!share_.Resize(share_.bytes() + most * sizeof(StoredWord))) return false;
  auto group = std::ranges::find(groups_, mirror, &Group::mirror);
  if (group == groups_.end()) group = groups_.insert(group, {.mirror = mirror, .words = {}});
  for (const wire::DeltaRun& run : runs) {
    AddRun(mirror->address + run.offset, run.bytes, &group->words);
    group->checked |= run.form == wire::PageForm::kChecked;
  }
  ++group->pushes;
  ++mirror->pushes.queued;
  delta_bytes += bytes;
  return true;
}

void WholeState::Merge() {
  size_t all = 0;
  for (Group& group : groups_) {
    std::ranges::stable_sort(group.words, {}, &StoredWord::address);
    size_t kept = 0;
    for (size_t i = 0; i < group.words.size(); ++i) {
      const StoredWord word = group.words[i];
      if (kept == 0 || group.words[kept - 1].address() != word.address()) {
        group.words[kept++] = word;
        continue;
      }
      StoredWord& same = group.words[kept - 1];
      EachByte(*group.mirror, word, [&](std::byte, size_t at) { same.now[at] = word.now[at]; });
      same.place |= word.place;
    }
    group.words.resize(kept);
    all += kept;
  }
  static_cast<void>(share_.Resize(all * sizeof(StoredWord)));  // less than before
}

void WholeState::AddBlock(const Mirror& mirror, std::span<const StoredWord> words) {
  StoredBlock& block = blocks_.emplace_back();
  block.place = words.front().address() / StoredBlock::kBytes * StoredBlock::kBytes;
  for (uint64_t i = 0; i < StoredBlock::kBytes; ++i) {
    const uint64_t offset = block.place + i - mirror.address;
    if (offset < mirror.bytes) block.was[i] = block.now[i] = mirror.shadow->data()[offset];
  }
  for (const StoredWord& word : words) {
    const uint64_t begin = word.address() - block.place;
    block.mask |= uint64_t{word.mask()} << begin;
    EachByte(mirror, word, [&](std::byte, size_t at) { block.now[begin + at] = word.now[at]; });
  }
  if (words.size() == kWordsOfStoredBlock) block.place |= StoredBlock::kFull;
}

void WholeState::ReadShadows() {
  const uint64_t before = share_.bytes();
  uint64_t cost = 0;
  blocks_.clear();
  for (const Group& group : groups_) {
    const std::vector<StoredWord>& words = group.words;
    for (size_t i = 0; i < words.size();) {
      const size_t first = i;
      const uint64_t block = words[i].address() / StoredBlock::kBytes;
      while (i < words.size() && words[i].address() / StoredBlock::kBytes == block) ++i;
      cost += i - first == kWordsOfStoredBlock ? 1 : kCostOfOthers;
      if (cost > kBlocksInATurn) break;
      AddBlock(*group.mirror, std::span(words).subspan(first, i - first));
    }
  }
  fits_ = cost <= kBlocksInATurn && share_.Resize(before + blocks_.size() * sizeof(StoredBlock));
  if (!fits_) blocks_ = {};
  has_shadows.store(true);
}

void WholeState::UpdateShadows() {
  for (const Group& group : groups_) {
    for (const StoredWord& word : group.words) {
      EachByte(*group.mirror, word, [&](std::byte& byte, size_t at) { byte = word.now[at]; });
      const uint64_t begin = std::max(word.address(), group.mirror->address);
      group.mirror->NoteChange(begin - group.mirror->address, kWordBytes);
    }
  }
}

void WholeState::CountDone() {
  for (const Group& group : groups_) group.mirror->pushes.done += group.pushes;
}

void WholeState::Drop(const Mirror& mirror) {
  std::erase_if(groups_, [&](const Group& group) { return group.mirror.get() == &mirror; });
}

}  // namespace longwire::worker
