#include "link/transport/packing.h"

#include <lz4.h>
#include <zstd.h>

#include <cstring>

#include "wire/guards.h"
#include "wire/limits.h"

namespace longwire::transport {
namespace {

// Smaller frames are not compressed: the cost of a frame dominates.
constexpr size_t kLeastBytes = size_t{4} << 10;
// Frames that do not shrink to this fraction are sent uncompressed.
constexpr double kWorthwhile = 0.95;
constexpr int kZstdLevel = 1;

}  // namespace

Packer::Packer() : zstd_(nullptr, ZSTD_freeCCtx) {}
Packer::~Packer() = default;

void Packer::Allow(uint32_t packing) {
  allowed_ = packing;
  choice_.Allow(packing);
}

// 0 when it does not fit.
size_t Packer::Compress(Codec codec, std::span<const std::byte> bytes, std::span<std::byte> to) {
  if (codec == Codec::kLz4) {
    int packed = LZ4_compress_default(reinterpret_cast<const char*>(bytes.data()),
                                      reinterpret_cast<char*>(to.data()),
                                      static_cast<int>(bytes.size()), static_cast<int>(to.size()));
    return packed > 0 ? static_cast<size_t>(packed) : 0;
  }
  if (zstd_ == nullptr) zstd_.reset(ZSTD_createCCtx());
  if (zstd_ == nullptr) return 0;
  size_t packed =
      ZSTD_compressCCtx(zstd_.get(), to.data(), to.size(), bytes.data(), bytes.size(), kZstdLevel);
  return ZSTD_isError(packed) != 0 ? 0 : packed;
}

std::shared_ptr<std::vector<std::byte>> Packer::Pack(std::span<const std::byte> bytes) {
  Codec codec = choice_.codec();
  if (codec == Codec::kNone || bytes.size() < kLeastBytes) return nullptr;
  if (buffer_ == nullptr || buffer_.use_count() > 1) {
    buffer_ = std::make_shared<std::vector<std::byte>>();
  }
  auto limit = static_cast<size_t>(static_cast<double>(bytes.size()) * kWorthwhile);
  PackedHeader header = {static_cast<uint32_t>(codec), static_cast<uint32_t>(bytes.size())};
  buffer_->resize(sizeof(header) + limit);
  std::memcpy(buffer_->data(), &header, sizeof(header));
  size_t packed = Compress(codec, bytes, std::span(*buffer_).subspan(sizeof(header)));
  choice_.Packed(bytes.size(), packed == 0 ? bytes.size() : packed);
  if (packed == 0) return nullptr;
  buffer_->resize(sizeof(header) + packed);
  return buffer_;
}

WireResult Unpacker::Unpack(const ReceivedFrame& frame, uint32_t packing, ReceivedFrame* plain) {
  PackedHeader header;
  if (frame.bytes <= sizeof(header) || frame.bytes > wire::kMaxBatchBytes)
    return WireResult::kFatal;
  packed_.clear();
  for (auto part : frame.body) packed_.insert(packed_.end(), part.begin(), part.end());
  std::memcpy(&header, packed_.data(), sizeof(header));
  bool agreed = header.codec == kPackLz4 || header.codec == kPackZstd;
  if (!agreed || (packing & header.codec) == 0) return WireResult::kFatal;
  if (header.bytes > wire::kMaxBatchBytes) return WireResult::kFatal;
  bytes_.resize(header.bytes);
  auto from = std::span(packed_).subspan(sizeof(header));
  size_t room = wire::kPlantedBug ? wire::kMaxBatchBytes : bytes_.size();
  size_t got = 0;
  if (header.codec == kPackLz4) {
    int unpacked = LZ4_decompress_safe(reinterpret_cast<const char*>(from.data()),
                                       reinterpret_cast<char*>(bytes_.data()),
                                       static_cast<int>(from.size()), static_cast<int>(room));
    if (unpacked < 0) return WireResult::kFatal;
    got = static_cast<size_t>(unpacked);
  } else {
    got = ZSTD_decompress(bytes_.data(), room, from.data(), from.size());
    if (ZSTD_isError(got) != 0) return WireResult::kFatal;
  }
  if (got != bytes_.size() && !wire::kPlantedBug) return WireResult::kFatal;
  plain->header = frame.header;
  plain->header.flags = 0;
  plain->body = {std::span<const std::byte>(bytes_.data(), got)};
  plain->bytes = got;
  return WireResult::kOk;
}

}  // namespace longwire::transport
