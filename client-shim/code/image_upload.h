// The upload of an image for the call that uses it, or of other bytes that the server may cache
// (cached_uploads.h). The call carries the digest. The bytes are sent only if the server does not
// have them from an earlier upload of the same tenant.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "client-shim/session/session.h"
#include "wire/sha256.h"

namespace longwire::shim {

class ImageUpload {
 public:
  ImageUpload(ClientSession& session, std::span<const std::byte> image, UploadCounts& counts)
      : session_(session), image_(image), counts_(counts) {}
  // The image's memory is not read afterwards.
  ~ImageUpload();
  ImageUpload(const ImageUpload&) = delete;
  ImageUpload& operator=(const ImageUpload&) = delete;

  // Called before the call is sent: fills in its fields of the image. If the server probably lacks
  // the bytes, they are sent first, which saves a round trip; else they are offered. False if the
  // session is over.
  template <class Call>
  bool Begin(Call* call) {
    if (!Start()) return false;
    call->transfer = transfer_;
    call->bytes = image_.size();
    if (has_digest_) call->digest = digest_;
    call->on_offer = on_offer_;
    return true;
  }
  // Takes the server's knowledge from the call's reply.
  void Answered(uint32_t knowledge);

 private:
  bool Start();

  ClientSession& session_;
  const std::span<const std::byte> image_;
  UploadCounts& counts_;
  uint64_t transfer_ = 0;
  wire::Digest digest_{};
  bool has_digest_ = false;
  bool on_offer_ = false;
};

}  // namespace longwire::shim
