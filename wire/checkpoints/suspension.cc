#include "wire/checkpoints/suspension.h"

namespace longwire::wire {
namespace {

constexpr uint32_t kRequestMagic = 0x5553574c;  // "LWSU"
constexpr uint32_t kReplyMagic = 0x5653574c;    // "LWSV"
constexpr size_t kMaxText = 4096;               // bytes of one name or sentence

}  // namespace

bool IsSuspensionRequest(std::span<const std::byte> message) {
  Reader reader(message);
  return DecodeMagic(reader, kRequestMagic) == WireResult::kOk;
}

void SuspensionRequest::Encode(Writer& writer) const {
  writer.U32(kRequestMagic);
  writer.U32(versions.oldest);
  writer.U32(static_cast<uint32_t>(wish));
  writer.U64(session);
  writer.U32(pid);
  writer.String(host);
  writer.Raw(device.data(), device.size());
  EncodeRange(writer, versions);
}

WireResult SuspensionRequest::Decode(Reader& reader) {
  std::span<const std::byte> all = Rest(reader);
  uint32_t number = 0;
  LW_TRY(DecodeMagic(reader, kRequestMagic));
  LW_TRY(reader.U32(&number));
  versions = RangeOf(all, number);
  if (!Common(versions, SpokenVersions())) return WireResult::kOk;
  uint32_t wished = 0;
  LW_TRY(reader.U32(&wished));
  if (wished > static_cast<uint32_t>(SuspensionWish::kRestore)) return WireResult::kFatal;
  wish = static_cast<SuspensionWish>(wished);
  LW_TRY(reader.U64(&session));
  LW_TRY(reader.U32(&pid));
  LW_TRY(reader.String(&host, kMaxText));
  LW_TRY(reader.Raw(device.data(), device.size()));
  SkipRest(reader);
  return WireResult::kOk;
}

void SuspensionReply::Encode(Writer& writer) const {
  writer.U32(kReplyMagic);
  writer.U32(protocol);
  for (bool one : {done, suspended, answered}) writer.U32(one ? 1 : 0);
  writer.String(sentence.substr(0, kMaxText));
  EncodeRange(writer, versions);
}

WireResult SuspensionReply::Decode(Reader& reader) {
  std::span<const std::byte> all = Rest(reader);
  LW_TRY(DecodeMagic(reader, kReplyMagic));
  LW_TRY(reader.U32(&protocol));
  versions = RangeOf(all, protocol);
  for (bool* one : {&done, &suspended, &answered}) {
    uint32_t word = 0;
    LW_TRY(reader.U32(&word));
    if (word > 1) return WireResult::kFatal;
    *one = word == 1;
  }
  LW_TRY(reader.String(&sentence, kMaxText));
  SkipRest(reader);
  return WireResult::kOk;
}

}  // namespace longwire::wire
