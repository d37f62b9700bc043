#include "mempool/testing/fake_device.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace longwire::mempool::testing {

void FakeDevice::Fault(const std::string& what) {
  if (fault_.empty()) fault_ = what;
}

bool FakeDevice::Fails() { return fail_in_ != 0 && --fail_in_ == 0; }

Mark FakeDevice::NewMark(FakeStream& stream) {
  ++marks_;
  return {&stream, stream.last};
}

int FakeDevice::Lease(const std::vector<uint64_t>& bytes, std::vector<Chunk>* chunks) {
  ++leases;
  uint64_t sum = 0;
  for (uint64_t size : bytes) sum += size;
  if (Fails() || sum > total_ - physical_) {
    if (unseen_) Finish();
    return kNoMemory;
  }
  for (uint64_t left : bytes) {
    if (left == 0 || left % (2 * kMiB) != 0) Fault("a chunk of an odd size");
    for (; left != 0; left -= chunks->back().bytes) {
      chunks->push_back({next_chunk_, std::min(left, largest_)});
      chunks_[next_chunk_++] = {chunks->back().bytes, 0};
    }
  }
  leased_ += sum;
  physical_ += sum;
  physical_peak_ = std::max(physical_peak_, physical_);
  return kDone;
}

void FakeDevice::Return(const std::vector<Chunk>& chunks) {
  ++returns;
  for (const Chunk& chunk : chunks) {
    auto found = chunks_.find(chunk.id);
    if (found == chunks_.end()) return Fault("a chunk is returned that is not leased");
    if (found->second.mappings != 0) Fault("a chunk is returned that stays mapped");
    leased_ -= found->second.bytes;
    returning_.push_back({chunk.id, found->second.bytes});
    chunks_.erase(found);
  }
}

void FakeDevice::MapOne(uint64_t address, const Chunk& chunk, uint32_t others) {
  auto next = mappings_.lower_bound(address);
  bool overlaps = next != mappings_.end() && next->first < address + chunk.bytes;
  if (next != mappings_.begin()) {
    auto before = std::prev(next);
    overlaps |= before->first + before->second.bytes > address;
  }
  if (overlaps) Fault("a mapping over another one");
  auto held = chunks_.find(chunk.id);
  if (held == chunks_.end()) return Fault("a mapping of a chunk that is not leased");
  if (held->second.bytes != chunk.bytes) Fault("a chunk is not as large as the pool thinks");
  if (held->second.mappings++ != others) Fault("a chunk is mapped twice");
  mappings_[address] = chunk;
  mapped_bytes_ += chunk.bytes;
}

int FakeDevice::Map(uint64_t address, const std::vector<Chunk>& chunks) {
  ++maps;
  if (Fails()) return 999;
  for (const Chunk& chunk : chunks) {
    MapOne(address, chunk, 0);
    address += chunk.bytes;
  }
  return kDone;
}

int FakeDevice::Remap(const Range& unmap, const std::vector<Chunk>& chunks, uint64_t moved) {
  ++remaps;
  if (Fails()) return 999;
  Unmap(unmap);
  --unmaps;
  unmapping_.pop_back();
  EraseMappings(unmap);
  uint64_t at = unmap.address;
  for (const Chunk& chunk : chunks) {
    MapOne(at, chunk, at - unmap.address < moved ? 1 : 0);
    at += chunk.bytes;
  }
  if (at != unmap.address + unmap.bytes) Fault("not as much is remapped as was unmapped");
  moved_bytes += moved;
  return kDone;
}

void FakeDevice::Unmap(const Range& range) {
  ++unmaps;
  uint64_t at = range.address;
  while (at < range.address + range.bytes) {
    auto found = mappings_.find(at);
    if (found == mappings_.end()) return Fault("an unmapping of what is not mapped");
    --chunks_.at(found->second.id).mappings;
    at += found->second.bytes;
  }
  if (at != range.address + range.bytes) Fault("an unmapping of a part of a chunk");
  unmapping_.push_back(range);
}

void FakeDevice::EraseMappings(const Range& range) {
  auto begin = mappings_.lower_bound(range.address);
  mappings_.erase(begin, mappings_.lower_bound(range.address + range.bytes));
  mapped_bytes_ -= range.bytes;
}

void FakeDevice::Finish(size_t count) {
  for (; count > 0 && !unmapping_.empty(); --count) {
    Range range = unmapping_.front();
    unmapping_.pop_front();
    EraseMappings(range);
    unmapped_.push_back(range);
  }
  if (!unmapping_.empty()) return;
  for (const Chunk& chunk : returning_) physical_ -= chunk.bytes;
  returning_.clear();
}

std::vector<Range> FakeDevice::TakeUnmapped() {
  std::vector<Range> taken = std::exchange(unmapped_, {});
  if (unseen_) Finish();
  return taken;
}

bool FakeDevice::Passed(const Mark& mark) {
  return static_cast<FakeStream*>(mark.stream)->finished >= mark.position;
}

bool FakeDevice::PutAllBehind(const Mark& mark) {
  auto* stream = static_cast<FakeStream*>(mark.stream);
  if (puts_behind_) stream->in_front = std::max(stream->in_front, mark.position);
  return puts_behind_;
}

void FakeDevice::Drop(const Mark&) { --marks_; }

bool FakeDevice::Find(uint64_t address, Physical* physical) const {
  auto after = mappings_.upper_bound(address);
  if (after == mappings_.begin()) return false;
  auto found = std::prev(after);
  uint64_t offset = address - found->first;
  if (offset >= found->second.bytes) return false;
  *physical = {found->second.id, offset, found->second.bytes - offset};
  return true;
}

}  // namespace longwire::mempool::testing
