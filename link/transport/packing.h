// Compression of a log's bytes on slow networks: the bodies of frames with kFramePacked. Positions
// and acknowledgements count uncompressed bytes, so no other part of a connection depends on it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "link/transport/message_stream.h"
#include "link/transport/packing_choice.h"
#include "wire/result.h"

struct ZSTD_CCtx_s;

namespace longwire::transport {

// Precedes the compressed bytes.
struct PackedHeader {
  uint32_t codec = 0;
  uint32_t bytes = 0;  // uncompressed
};

// One direction of a connection. Not thread-safe.
class Packer {
 public:
  Packer();
  ~Packer();

  // PackingFlags that both ends agreed on.
  void Allow(uint32_t packing);
  uint32_t allowed() const { return allowed_; }
  // As PackingChoice::Delivered.
  void Delivered(uint64_t delivered, uint64_t sent, PackingChoice::Time now) {
    choice_.Delivered(delivered, sent, now);
  }

  // As PackingChoice::Sent, after Pack.
  void Sent(uint64_t sent, size_t bytes, PackingChoice::Time now) {
    choice_.Sent(sent, bytes, now);
  }

  // The body of a packed frame; null: these bytes are sent uncompressed.
  std::shared_ptr<std::vector<std::byte>> Pack(std::span<const std::byte> bytes);

 private:
  size_t Compress(Codec codec, std::span<const std::byte> bytes, std::span<std::byte> to);

  uint32_t allowed_ = 0;
  PackingChoice choice_;
  std::unique_ptr<ZSTD_CCtx_s, size_t (*)(ZSTD_CCtx_s*)> zstd_;
  std::shared_ptr<std::vector<std::byte>> buffer_;  // reused once the stream has released it
};

class Unpacker {
 public:
  // The uncompressed frame, valid until the next call. kFatal when its codec is not one of
  // `packing`, or the frame is damaged or too large.
  WireResult Unpack(const ReceivedFrame& frame, uint32_t packing, ReceivedFrame* plain);

 private:
  std::vector<std::byte> packed_, bytes_;
};

}  // namespace longwire::transport
