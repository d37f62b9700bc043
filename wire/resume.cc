#include "wire/resume.h"

#include "wire/result.h"

namespace longwire::wire {
namespace {

constexpr uint32_t kRequestMagic = 0x5257574c;  // "LWWR"

}  // namespace

void ResumeRequest::Encode(Writer& writer) const {
  writer.U32(kRequestMagic);
  writer.U32(lanes);
}

WireResult ResumeRequest::Decode(Reader& reader) {
  uint32_t magic = 0;
  LW_TRY(reader.U32(&magic));
  LW_TRY(reader.U32(&lanes));
  return magic == kRequestMagic && lanes <= kMaxLanes ? WireResult::kOk : WireResult::kFatal;
}

bool IsResumeRequest(std::span<const std::byte> message) {
  Reader reader(message);
  ResumeRequest request;
  return request.Decode(reader) == WireResult::kOk;
}

}  // namespace longwire::wire
