#include "server/worker/process/contents_out.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <set>
#include <utility>

#include "base/read_write.h"
#include "server/worker/process/carried_arrays.h"
#include "server/worker/process/session.h"
#include "wire/switches.h"

namespace longwire::worker {
namespace {

const bool kPeers = !wire::IsSwitchedOff("peer-moves");

// Smaller chunks are copied by pieces in the time that a keeper needs to map two.
constexpr uint64_t kLeastFill = uint64_t{8} << 20;
constexpr size_t kAskedAhead = 8;
constexpr size_t kZeroBlock = size_t{64} << 10;
// Pieces that are copied before the first of them is written.
constexpr size_t kAhead = 2;
// Of arrays and shadows; no row is longer.
constexpr size_t kPartBytes = size_t{8} << 20;

bool IsZero(std::span<const std::byte> bytes) {
  return bytes.empty() || (bytes[0] == std::byte{0} &&
                           std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

// The runs of blocks that are not zero, or all. False once `take` says so.
template <class Take>
bool ForEachUsed(std::span<const std::byte> read, bool all, const Take& take) {
  size_t begin = 0, end = all ? read.size() : 0;
  for (size_t at = 0; !all && at < read.size(); at += kZeroBlock) {
    auto block = read.subspan(at, std::min(kZeroBlock, read.size() - at));
    if (IsZero(block)) {
      if (end > begin && !take(begin, end - begin)) return false;
      begin = end = at + block.size();
    } else {
      end = at + block.size();
    }
  }
  return end == begin || take(begin, end - begin);
}

// Device memory that stays where it is while all is written.
bool IsMemory(const Contents& contents) {
  return contents.chunk == 0 && contents.shadow == 0 && contents.array == 0;
}

}  // namespace

ContentsOut::ContentsOut(WorkerSession& session, SnapshotWriter& to, MovePieces& pieces,
                         bool shared, int stream)
    : session_(session),
      to_(to),
      pieces_(pieces),
      shared_(shared),
      stream_(stream),
      later_(stream),
      away_(MovePieces::kPieces) {
  for (size_t piece = 0; piece < MovePieces::kPieces; ++piece) free_.push_back(piece);
}

std::string ContentsOut::FindAll() {
  std::set<uint64_t> accessible;
  for (const CarriedMapping& mapping : session_.memory().Carry().mappings) {
    if (!mapping.access || !accessible.insert(mapping.chunk).second) continue;
    Contents& one = all_.emplace_back();
    one.address = mapping.address;
    one.bytes = mapping.bytes;
    chunks_.push_back(mapping.chunk);
  }
  for (const CarriedChunk& chunk : session_.memory().Hidden()) {
    Contents& one = all_.emplace_back();
    one.chunk = chunk.number;
    one.bytes = chunk.bytes;
  }
  for (const auto& mirror : session_.mirrors().All()) {
    Contents& one = all_.emplace_back();
    one.shadow = mirror->id;
    one.bytes = mirror->bytes;
  }
  std::string problem = FindArrays(session_, &all_);
  return problem.empty() ? FindVariables(session_, &all_) : problem;
}

bool ContentsOut::Write(std::string* problem) {
  *problem = FindAll();
  if (!problem->empty()) return false;
  if (shared_) return FillChunks() && WriteAllOf(problem);
  later_.Start();
  to_.WriteThrough(&later_);
  const bool written = WriteAllOf(problem) && later_.Flush();
  to_.WriteThrough(nullptr);
  return written;
}

// Whole chunks that the new worker's keeper copies from the device itself. While it copies one, the
// keeper here is asked for the next. The first one that is not copied, and those behind it, go by
// pieces.
bool ContentsOut::FillChunks() {
  bool goes = kPeers;
  std::vector<Contents> rest;
  std::deque<size_t> asked;
  for (size_t i = 0; i < all_.size(); ++i) {
    wire::Descriptor file;
    const bool may = goes && i < chunks_.size() && all_[i].bytes >= kLeastFill;
    if (!may || session_.memory().FileOf(chunks_[i], &file) != CUDA_SUCCESS) {
      rest.push_back(all_[i]);
      goes &= !may;
      continue;
    }
    if (!to_.Write(all_[i]) || !to_.Write(SharedChunk{all_[i].bytes}, file)) return false;
    asked.push_back(i);
    if (asked.size() == kAskedAhead && !TakeFilled(&asked, &rest, &goes)) return false;
  }
  while (!asked.empty()) {
    if (!TakeFilled(&asked, &rest, &goes)) return false;
  }
  all_ = std::move(rest);
  return true;
}

// The answer about the first of those that were asked for.
bool ContentsOut::TakeFilled(std::deque<size_t>* asked, std::vector<Contents>* rest, bool* goes) {
  unsigned char answer = 0;
  if (!base::ReadAll(stream_, std::as_writable_bytes(std::span(&answer, 1)))) return false;
  if (answer != kChunkFilled && answer != kChunkNotFilled) return false;
  if (answer == kChunkNotFilled) rest->push_back(all_[asked->front()]);
  *goes &= answer == kChunkFilled;
  asked->pop_front();
  return true;
}

bool ContentsOut::WriteAllOf(std::string* problem) {
  session_.SetPrimaryContext(session_.devices().front());
  for (size_t number = 0; number < all_.size(); ++number) {
    const Contents& contents = all_[number];
    bool written = to_.Write(contents);
    if (written && IsMemory(contents)) {
      written = WriteMemory(number, problem);
    } else if (written) {
      next_ = number + 1;
      written = contents.chunk != 0   ? WriteHidden(contents, problem)
                : contents.array != 0 ? WriteArray(contents, problem)
                                      : WriteShadow(contents);
    }
    if (!written) return false;
  }
  return true;
}

bool ContentsOut::Fails(CUresult result, std::string* problem) {
  if (result == CUDA_SUCCESS) return false;
  *problem = "its memory cannot be read (error " + std::to_string(result) + ")";
  return true;
}

// The next copies, across chunks, so that the new worker has one to read while this one copies.
bool ContentsOut::CopyMore(std::string* problem) {
  if (!TakeBack(false)) return false;
  while (copied_.size() < kAhead && !free_.empty() && next_ < all_.size() &&
         IsMemory(all_[next_])) {
    const Contents& contents = all_[next_];
    Turn turn{next_, next_at_, MovePieces::kPieceBytes, free_.back()};
    turn.bytes = std::min<uint64_t>(turn.bytes, contents.bytes - next_at_);
    next_at_ += turn.bytes;
    if (next_at_ == contents.bytes) {
      ++next_;
      next_at_ = 0;
    }
    if (turn.bytes == 0) continue;
    free_.pop_back();
    copied_.push_back(turn);
    CUresult result = pieces_.CopyOut(turn.piece, contents.address + turn.offset, turn.bytes);
    if (Fails(result, problem)) return false;
  }
  return true;
}

bool ContentsOut::WriteMemory(size_t number, std::string* problem) {
  for (uint64_t written = 0; written < all_[number].bytes;) {
    if (!CopyMore(problem)) return false;
    if (copied_.empty()) {
      if (!TakeBack(true)) return false;
      continue;
    }
    const Turn turn = copied_.front();
    copied_.pop_front();
    if (!WriteTurn(turn)) return false;
    written += turn.bytes;
  }
  return true;
}

// Most of what a program has in its memory was often never written.
bool ContentsOut::WriteTurn(const Turn& turn) {
  const bool all = all_[turn.contents].context != 0;
  const std::span<const std::byte> read = pieces_.piece(turn.piece).first(turn.bytes);
  if (!shared_) {
    const bool written = ForEachUsed(read, all, [&](size_t at, size_t bytes) {
      return to_.Write(Part{turn.offset + at, bytes}) && to_.WritePiece(read.subspan(at, bytes));
    });
    return written && later_.GiveBack(turn.piece);
  }
  SharedPiece shared{static_cast<uint32_t>(turn.piece), turn.offset, {}};
  ForEachUsed(read, all, [&](size_t at, size_t bytes) {
    shared.runs.push_back({at, bytes});
    return true;
  });
  if (shared.runs.empty()) {
    free_.push_back(turn.piece);
    return true;
  }
  away_[turn.piece] = true;
  return to_.Write(shared);
}

bool ContentsOut::WriteParts(uint64_t offset, std::span<const std::byte> read, bool all) {
  return ForEachUsed(read, all, [&](size_t at, size_t bytes) {
    return to_.Write(Part{offset + at, bytes}) && to_.WriteBytes(read.subspan(at, bytes));
  });
}

// Pieces that may be used again. False if the stream is broken.
bool ContentsOut::TakeBack(bool wait) {
  return shared_ ? TakeBackShared(wait) : later_.TakeWritten(&free_, wait);
}

// What the new worker has read. False if it is gone, or says of a piece what cannot be.
bool ContentsOut::TakeBackShared(bool wait) {
  std::array<unsigned char, MovePieces::kPieces> numbers{};
  ssize_t got = -1;
  do {
    got = recv(stream_, numbers.data(), numbers.size(), wait ? 0 : MSG_DONTWAIT);
  } while (got < 0 && errno == EINTR);
  if (got < 0 && errno == EAGAIN) return true;
  for (ssize_t i = 0; i < got; ++i) {
    const size_t piece = numbers[static_cast<size_t>(i)];
    if (piece >= away_.size() || !away_[piece]) return false;
    away_[piece] = false;
    free_.push_back(piece);
  }
  return got > 0;
}

bool ContentsOut::WriteHidden(const Contents& contents, std::string* problem) {
  ShownChunk shown(session_.memory(), contents.chunk, contents.bytes);
  if (shown.result() != CUDA_SUCCESS) {
    *problem = "its unmapped memory cannot be read (error " + std::to_string(shown.result()) + ")";
    return false;
  }
  const size_t number = static_cast<size_t>(&contents - all_.data());
  for (uint64_t at = 0; at < contents.bytes;) {
    if (free_.empty() && !TakeBack(true)) return false;
    const size_t bytes = std::min<uint64_t>(MovePieces::kPieceBytes, contents.bytes - at);
    const Turn turn{number, at, bytes, free_.back()};
    free_.pop_back();
    CUresult result = pieces_.CopyOut(turn.piece, shown.address() + at, bytes);
    if (Fails(result, problem) || !WriteTurn(turn)) return false;
    at += bytes;
  }
  return true;
}

bool ContentsOut::WriteArray(const Contents& contents, std::string* problem) {
  CUarray array = nullptr;
  ArrayRows rows;
  CUresult result = ArrayOf(session_, contents, &array, &rows);
  if (result != CUDA_SUCCESS || rows.row_bytes > kPartBytes) {
    *problem = "one of its arrays cannot be read (error " + std::to_string(result) + ")";
    return false;
  }
  std::vector<std::byte> part(kPartBytes / rows.row_bytes * rows.row_bytes);
  for (uint64_t at = 0; at < contents.bytes; at += part.size()) {
    const auto read = std::span(part).first(std::min<uint64_t>(part.size(), contents.bytes - at));
    result = CopyRows(session_.driver(), array, rows, at / rows.row_bytes,
                      read.size() / rows.row_bytes, read.data(), true);
    if (Fails(result, problem) || !WriteParts(at, read, true)) return false;
  }
  return true;
}

bool ContentsOut::WriteShadow(const Contents& contents) {
  const auto mirror = session_.mirrors().Find(contents.shadow);
  if (mirror == nullptr) return false;
  for (uint64_t at = 0; at < contents.bytes; at += kPartBytes) {
    const size_t bytes = std::min<uint64_t>(kPartBytes, contents.bytes - at);
    if (!WriteParts(at, {mirror->shadow->data() + at, bytes}, false)) return false;
  }
  return true;
}

}  // namespace longwire::worker
