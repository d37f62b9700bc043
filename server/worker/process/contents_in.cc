#include "server/worker/process/contents_in.h"

#include <sys/socket.h>

#include <algorithm>

#include "server/worker/process/session.h"

namespace longwire::worker {
namespace {

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
  streams_ = true;
  for (uint64_t at = 0; at < part.bytes;) {
    const size_t bytes = std::min<uint64_t>(MovePieces::kPieceBytes, part.bytes - at);
    if (!from_.ReadBytes(pieces_.piece(0).first(bytes))) return kBrokenStream;
    CUresult result = pieces_.CopyIn(base_ + part.offset + at, 0, 0, bytes);
    if (result != CUDA_SUCCESS) return Landed(result);
    at += bytes;
  }
  return "";
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
    CUresult result =
        pieces_.CopyIn(base_ + shared.offset + run.at, shared.piece, run.at, run.bytes);
    if (result != CUDA_SUCCESS) return Landed(result);
  }
  // An old worker that has written all may be gone; that one is gone too early, reading tells.
  const auto number = static_cast<unsigned char>(shared.piece);
  (void)!send(stream_, &number, sizeof(number), MSG_NOSIGNAL | MSG_DONTWAIT);
  return "";
}

}  // namespace longwire::worker
