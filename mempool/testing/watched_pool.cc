#include "mempool/testing/watched_pool.h"

#include <algorithm>
#include <iterator>

namespace longwire::mempool::testing {

WatchedPool::WatchedPool(uint64_t device_bytes, uint64_t window_bytes, size_t stream_count)
    : device(device_bytes),
      pool(device, {kWindowBase, window_bytes != 0 ? window_bytes : 8 * device_bytes}, 2 * kMiB),
      streams(stream_count) {}

std::optional<std::vector<WatchedPool::Piece>> WatchedPool::PiecesOf(uint64_t address,
                                                                     uint64_t bytes) {
  std::vector<Piece> pieces;
  bytes = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  while (bytes > 0) {
    FakeDevice::Physical physical;
    if (!device.Find(address, &physical)) return std::nullopt;
    uint64_t length = std::min(bytes, physical.left);
    pieces.push_back({{physical.chunk, physical.offset}, length});
    address += length;
    bytes -= length;
  }
  return pieces;
}

bool WatchedPool::MayTake(const Owner& owner, const FakeStream* stream) {
  if (!owner.freed) return false;
  return std::all_of(owner.marks.begin(), owner.marks.end(), [&](const Mark& mark) {
    bool in_front = static_cast<FakeStream*>(mark.stream)->in_front >= mark.position;
    return device.Passed(mark) || mark.stream == stream || in_front;
  });
}

void WatchedPool::TakePieces(uint64_t address, uint64_t bytes, const FakeStream* stream) {
  auto pieces = PiecesOf(address, bytes);
  if (!pieces) return Fault("an allocation lies where nothing is mapped");
  for (const Piece& piece : *pieces) {
    auto [chunk, offset] = piece.place;
    auto next = owners_.lower_bound(piece.place);
    if (next != owners_.begin()) {
      auto before = std::prev(next);
      bool reaches =
          before->first.first == chunk && before->first.second + before->second.bytes > offset;
      if (reaches) next = before;
    }
    while (next != owners_.end() && next->first.first == chunk &&
           next->first.second < offset + piece.bytes) {
      if (!MayTake(next->second, stream)) return Fault("a byte that is still in use is given out");
      uint64_t start = next->first.second, end = start + next->second.bytes;
      Owner owner = next->second;
      next = owners_.erase(next);
      // What is left of it on both sides stays as it was.
      if (start < offset) owners_[{chunk, start}] = {offset - start, owner.marks, true};
      if (end > offset + piece.bytes) {
        uint64_t from = offset + piece.bytes;
        owners_[{chunk, from}] = {end - from, owner.marks, true};
      }
    }
    owners_[piece.place] = {piece.bytes, {}, false};
  }
}

int WatchedPool::Allocate(uint64_t bytes, uint64_t* address, FakeStream* stream) {
  int code = 0;
  while ((code = pool.Place(bytes, stream, address)) < 0) {
    bool nothing = !device.Pending() && !device.finishes_unseen();
    if (code == Pool::kWaitForDevice && nothing) Fault("it is to wait for nothing");
    if (code == Pool::kWaitForDevice) device.Finish();
    if (code == Pool::kWaitForWork && pool.OldestMarks().empty()) {
      Fault("it is to wait for nothing");
    }
    if (!fault_.empty()) return kNoMemory;
    if (code != Pool::kWaitForWork) continue;
    for (const Mark& mark : pool.OldestMarks()) {
      auto* waited = static_cast<FakeStream*>(mark.stream);
      waited->finished = std::max(waited->finished, mark.position);
    }
  }
  if (code != kDone) return code;
  if (*address % kAlignment != 0) Fault("an address that is not aligned");
  auto next = live_.lower_bound(*address);
  if (next != live_.end() && next->first < *address + bytes) Fault("allocations overlap");
  if (next != live_.begin() && std::prev(next)->first + std::prev(next)->second > *address) {
    Fault("allocations overlap");
  }
  TakePieces(*address, bytes, stream);
  live_[*address] = bytes;
  if (stream != nullptr) home_[*address] = stream;
  live_bytes_ += bytes;
  live_peak_ = std::max(live_peak_, live_bytes_);
  return kDone;
}

void WatchedPool::Free(uint64_t address, unsigned busy) {
  uint64_t bytes = live_.at(address);
  std::vector<Mark> marks;
  for (size_t i = 0; i < streams.size(); ++i) {
    bool unfinished = streams[i].finished < streams[i].last;
    // Where it was allocated there may be work of whoever had the memory before.
    bool home = home_.count(address) != 0 && home_.at(address) == &streams[i];
    if ((home || (busy >> i & 1) != 0) && unfinished) marks.push_back(device.NewMark(streams[i]));
  }
  if (auto pieces = PiecesOf(address, bytes)) {
    for (const Piece& piece : *pieces) owners_[piece.place] = {piece.bytes, marks, true};
  } else {
    Fault("an allocation is not mapped any more");
  }
  live_bytes_ -= bytes;
  live_.erase(address);
  // Either form frees what either form has allocated; here each its own.
  Freed freed = home_.erase(address) != 0 ? Freed::kInStream : Freed::kForAll;
  pool.Free(address, bytes, marks, freed);
}

bool WatchedPool::Move(uint64_t from, uint64_t to) {
  uint64_t moved = 0;
  if (!pool.CanMove(from, to, &moved)) return false;
  for (FakeStream& stream : streams) stream.finished = stream.last;
  auto source = PiecesOf(from, live_.at(from)), target = PiecesOf(to, live_.at(to));
  uint64_t leased = device.leased();
  if (!source || !target || !pool.Move(from, to)) return false;
  if (moved < live_.at(from)) Fault("a part of a block was moved");
  if (device.leased() != leased) Fault("a move leased or gave back");
  auto now = PiecesOf(to, live_.at(from));
  bool same = now && now->size() == source->size();
  for (size_t i = 0; same && i < now->size(); ++i) {
    same = (*now)[i].place == (*source)[i].place && (*now)[i].bytes == (*source)[i].bytes;
  }
  if (!same) Fault("other bytes than those of the source are where the target starts");
  for (const auto* pieces : {&*source, &*target}) {
    for (const Piece& piece : *pieces) owners_[piece.place] = {piece.bytes, {}, true};
  }
  live_bytes_ -= live_.at(from);
  live_.erase(from);
  home_.erase(from);
  TakePieces(to, live_.at(to), nullptr);
  return true;
}

void WatchedPool::Progress(size_t stream, uint64_t count) {
  FakeStream& moved = streams[stream];
  moved.finished = std::min(moved.last, moved.finished + count);
}

void WatchedPool::FinishAll() {
  for (FakeStream& stream : streams) stream.finished = stream.last;
  device.Finish();
  pool.Collect();
}

}  // namespace longwire::mempool::testing
