// One image on its way to the worker, for the call that uses it, or other bytes that the server may
// cache (cached_uploads.h). The server is offered their digest; the bytes go only if it does not
// know them from an earlier upload of the same tenant.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "client-shim/session/session.h"
#include "wire/sha256.h"

namespace longwire::shim {

class ImageUpload {
 public:
  ImageUpload(Session& session, std::span<const std::byte> image, UploadCounts& counts)
      : session_(session), image_(image), counts_(counts) {}
  // Nobody reads the image from here on.
  ~ImageUpload();
  ImageUpload(const ImageUpload&) = delete;
  ImageUpload& operator=(const ImageUpload&) = delete;

  // Before the call is sent: fills in what it says of the image. The bytes go first when the server
  // probably lacks them, which saves their own round trip; else they are kept on offer. False when
  // the session is over.
  template <class Call>
  bool Begin(Call* call) {
    if (!Start()) return false;
    call->transfer = transfer_;
    call->bytes = image_.size();
    if (has_digest_) call->digest = digest_;
    call->on_offer = on_offer_;
    return true;
  }
  // What the call's reply said.
  void Answered(uint32_t knowledge);

 private:
  bool Start();

  Session& session_;
  const std::span<const std::byte> image_;
  UploadCounts& counts_;
  uint64_t transfer_ = 0;
  wire::Digest digest_{};
  bool has_digest_ = false;
  bool on_offer_ = false;
};

}  // namespace longwire::shim
