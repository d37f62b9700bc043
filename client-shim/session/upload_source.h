// What a sender of bytes reads: memory that its caller keeps, or an upload that the worker
// requested and that may end while it is sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "client-shim/session/transfers.h"

namespace longwire::shim {

class UploadSource {
 public:
  // The caller keeps the memory until all is sent.
  explicit UploadSource(const HostPlace& place) { request_.place = place; }
  UploadSource(Transfers& transfers, const Transfers::Request& request)
      : transfers_(&transfers), request_(request) {}

  const HostPlace& place() const { return request_.place; }
  uint64_t bytes() const { return place().bytes(); }
  // As HostPlace's; zeros once the upload has ended.
  void Gather(uint64_t offset, std::span<std::byte> packed) const;

 private:
  Transfers* transfers_ = nullptr;
  Transfers::Request request_;
};

}  // namespace longwire::shim
