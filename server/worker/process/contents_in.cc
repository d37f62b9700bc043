#include "server/worker/process/contents_in.h"

#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "base/poll_set.h"
#include "base/read_write.h"
#include "server/worker/process/session.h"
#include "wire/switches.h"

namespace longwire::worker {
namespace {

const bool kReadsAhead = !wire::IsSwitchedOff("overlapped-moves");

// Less is copied only where a part, or the memory that is read into, ends.
constexpr size_t kLeastCopy = size_t{1} << 20;

// Chunks that the keeper copies: while it copies one it maps the next ones.
constexpr size_t kFillsAtOnce = 6;

// Of an array, at once.
constexpr size_t kRowsBytes = size_t{8} << 20;

std::string WithError(const char* what, CUresult result) {
  return std::string(what) + " (error " + std::to_string(result) + ")";
}

bool IsWithin(uint64_t offset, uint64_t bytes, uint64_t all) {
  return offset <= all && bytes <= all - offset;
}

}  // namespace

std::string ContentsIn::Landed(CUresult result) {
  return result == CUDA_SUCCESS ? "" : WithError("its memory cannot be written", result);
}

std::string ContentsIn::Find(const Contents& contents) {
  contents_ = contents;
  if (contents.context != 0) {
    CUdeviceptr address = 0;
    size_t bytes = 0;
    CUresult result =
        PlaceOf(session_, contents.library, contents.context, contents.name, &address, &bytes);
    if (result != CUDA_SUCCESS || address != contents.address || bytes != contents.bytes) {
      return "the variable " + contents.name + " lies elsewhere there";
    }
    session_.SetPrimaryContext(session_.devices().front());
  }
  array_ = nullptr;
  if (contents.array != 0) {
    CUresult result = ArrayOf(session_, contents, &array_, &rows_);
    if (result != CUDA_SUCCESS || rows_.bytes() != contents.bytes) {
      return WithError("one of its arrays is another one there", result);
    }
  }
  shown_.reset();
  base_ = contents.address;
  if (contents.chunk != 0) {
    shown_.emplace(session_.memory(), contents.chunk, contents.bytes);
    base_ = shown_->address();
    if (shown_->result() != CUDA_SUCCESS) {
      return WithError("its unmapped memory does not fit there", shown_->result());
    }
  }
  shadow_ = session_.mirrors().Find(contents.shadow);
  const bool fits = shadow_ == nullptr || shadow_->bytes == contents.bytes;
  return contents.shadow == 0 || (shadow_ != nullptr && fits) ? "" : kBrokenStream;
}

// Fresh memory is zero.
std::string ContentsIn::Take(const Part& part) {
  if (!IsWithin(part.offset, part.bytes, contents_.bytes)) return kBrokenStream;
  if (part.bytes == 0) return "";
  if (shadow_ != nullptr) {
    const bool read = from_.ReadBytes({shadow_->shadow->data() + part.offset, part.bytes});
    return read ? "" : kBrokenStream;
  }
  return array_ != nullptr ? TakeIntoArray(part) : TakeIntoMemory(part);
}

std::string ContentsIn::TakeIntoMemory(const Part& part) {
  if (shares_) return kBrokenStream;
  if (!std::exchange(streams_, true)) ReadAhead();
  for (uint64_t at = 0; at < part.bytes;) {
    const size_t most = std::min<uint64_t>(MovePieces::kPieceBytes, part.bytes - at);
    std::span<const std::byte> bytes = pieces_.piece(0).first(most);
    if (early_) {
      bytes = early_->Next(std::min(kLeastCopy, most), most);
      if (bytes.empty()) return kBrokenStream;
    } else if (!from_.ReadBytes(pieces_.piece(0).first(most))) {
      return kBrokenStream;
    }
    CUresult result = pieces_.CopyIn(base_ + part.offset + at, bytes);
    if (result != CUDA_SUCCESS) return Landed(result);
    at += bytes.size();
    if (early_) early_->Used(bytes.size());
  }
  return "";
}

// From now on, as the pieces are not the old worker's. Without a thread it goes on as before.
void ContentsIn::ReadAhead() {
  if (!kReadsAhead) return;
  early_.emplace(stream_, pieces_.all());
  if (!early_->Start()) return early_.reset();
  from_.ReadThrough(&*early_);
}

std::string ContentsIn::TakeIntoArray(const Part& part) {
  const uint64_t row = rows_.row_bytes;
  if (part.offset % row != 0 || part.bytes % row != 0) return kBrokenStream;
  part_.resize(std::min<uint64_t>(std::max(row, kRowsBytes / row * row), part.bytes));
  for (uint64_t at = 0; at < part.bytes; at += part_.size()) {
    const auto bytes = std::span(part_).first(std::min<uint64_t>(part_.size(), part.bytes - at));
    if (!from_.ReadBytes(bytes)) return kBrokenStream;
    CUresult result = CopyRows(session_.driver(), array_, rows_, (part.offset + at) / row,
                               bytes.size() / row, bytes.data(), false);
    if (result != CUDA_SUCCESS) return Landed(result);
  }
  return "";
}

// Where the keeper does not copy it, the old worker writes its bytes behind it.
std::string ContentsIn::Take(const SharedChunk& shared, const wire::Descriptor& file) {
  const bool is_chunk = contents_.context == 0 && contents_.array == 0 && contents_.shadow == 0 &&
                        contents_.chunk == 0 && contents_.bytes == shared.bytes;
  if (streams_ || !is_chunk) return kBrokenStream;
  uint64_t request = 0;
  if (file.valid()) {
    (void)session_.memory().StartFill(contents_.address, contents_.bytes, file, &request);
  }
  fills_.push_back(request);
  // The next one may begin before this one has ended, if it is there already.
  const auto more = [&] {
    return base::PollOne(stream_, POLLIN, std::chrono::milliseconds(0)) != 0;
  };
  while (!fills_.empty() && (fills_.size() >= kFillsAtOnce || !more())) {
    if (!AnswerFill()) return kBrokenStream;
  }
  return "";
}

bool ContentsIn::AnswerFill() {
  const uint64_t request = fills_.front();
  fills_.pop_front();
  const CUresult result =
      request == 0 ? CUDA_ERROR_NOT_SUPPORTED : session_.memory().EndFill(request);
  // The keeper has not answered: it may still write there.
  if (result == CUDA_ERROR_DEVICE_UNAVAILABLE) return false;
  const unsigned char answer = result == CUDA_SUCCESS ? kChunkFilled : kChunkNotFilled;
  return base::WriteAll(stream_, std::as_bytes(std::span(&answer, 1)));
}

std::string ContentsIn::Take(const SharedPiece& shared) {
  if (streams_ || shared.piece >= MovePieces::kPieces || shadow_ != nullptr || array_ != nullptr) {
    return kBrokenStream;
  }
  shares_ = true;
  for (const SharedPiece::Run& run : shared.runs) {
    if (!IsWithin(run.at, run.bytes, MovePieces::kPieceBytes) ||
        !IsWithin(shared.offset, run.at + run.bytes, contents_.bytes)) {
      return kBrokenStream;
    }
    const auto bytes = pieces_.piece(shared.piece).subspan(run.at, run.bytes);
    CUresult result = pieces_.CopyIn(base_ + shared.offset + run.at, bytes);
    if (result != CUDA_SUCCESS) return Landed(result);
  }
  // An old worker that has written all may be gone; that one is gone too early, reading tells.
  const auto number = static_cast<unsigned char>(shared.piece);
  (void)!send(stream_, &number, sizeof(number), MSG_NOSIGNAL | MSG_DONTWAIT);
  return "";
}

}  // namespace longwire::worker
