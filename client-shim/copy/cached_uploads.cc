#include "client-shim/copy/cached_uploads.h"

#include <algorithm>

#include "client-shim/code/image_upload.h"
#include "client-shim/connect/connection.h"
#include "client-shim/connect/options.h"
#include "client-shim/context/context.h"
#include "client-shim/session/session.h"
#include "client-shim/stream/capture.h"
#include "client-shim/stream/program_streams.h"
#include "longwire/calls.h"

namespace longwire::shim {
namespace {

// The worker holds a piece in memory as a whole. Of a file that changed in part, the pieces that
// did not change are still cached.
constexpr uint64_t kPieceBytes = uint64_t{64} << 20;

CUresult UploadPiece(const Where& where, uint64_t destination, std::span<const std::byte> piece) {
  ClientSession& session = *where.session;
  calls::lwCopyKept copy;
  copy.address = destination;
  ImageUpload upload(session, piece, session.counts().cached);
  if (!upload.Begin(&copy)) return ClientSession::NotSent();
  auto answer = session.CallAndWait(where, copy);
  if (answer.code == CUDA_SUCCESS) upload.Answered(answer.reply.knowledge);
  return answer.code;
}

}  // namespace

bool IsCached(uint64_t bytes) {
  // To a server on this host the bytes are sent sooner than their digest is computed.
  static const uint64_t least = IsLocal(ProcessOptions()) ? 0 : ProcessOptions().cached_uploads;
  return least != 0 && bytes >= least;
}

CUresult UploadCached(Stream* stream, uint64_t destination, std::span<const std::byte> bytes) {
  // Earlier work of the stream may read or write the destination.
  std::vector<StreamPoint> before = UnfinishedBefore(stream);
  CUresult result = WaitForWork(before);
  const Where where = WhereOf(stream->context);
  while (result == CUDA_SUCCESS && !bytes.empty()) {
    auto piece = bytes.first(std::min<size_t>(bytes.size(), kPieceBytes));
    result = UploadPiece(where, destination, piece);
    destination += piece.size();
    bytes = bytes.subspan(piece.size());
  }
  return result;
}

}  // namespace longwire::shim
