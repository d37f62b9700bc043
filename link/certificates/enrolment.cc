#include "link/certificates/enrolment.h"

#include <cstring>

namespace longwire::certificates {
namespace {

using wire::Reader;
using wire::WireResult;
using wire::Writer;

constexpr size_t kMaxSentence = 4096;
constexpr size_t kMaxNameText =
    256;  // more than a name may have, so that it is refused by a sentence

WireResult ReadVersion(Reader& reader) {
  uint8_t version = 0;
  LW_TRY(reader.U8(&version));
  return version == kEnrolmentVersion ? WireResult::kOk : WireResult::kFatal;
}

}  // namespace

void Request::Encode(Writer& writer) const {
  writer.U8(kEnrolmentVersion);
  writer.U8(static_cast<uint8_t>(kind));
  if (kind == Kind::kJoin) writer.Raw(secret.data(), secret.size());
  writer.String(signing_request);
}

WireResult Request::Decode(Reader& reader) {
  LW_TRY(ReadVersion(reader));
  uint8_t number = 0;
  LW_TRY(reader.U8(&number));
  if (number != static_cast<uint8_t>(Kind::kJoin) && number != static_cast<uint8_t>(Kind::kRenew)) {
    return WireResult::kFatal;
  }
  kind = static_cast<Kind>(number);
  if (kind == Kind::kJoin) LW_TRY(reader.Raw(secret.data(), secret.size()));
  return reader.String(&signing_request, kMaxRequestBytes);
}

void Answer::Encode(Writer& writer) const {
  writer.U8(kEnrolmentVersion);
  for (const std::string* text : {&problem, &certificate, &authority, &server}) {
    writer.String(*text);
  }
}

WireResult Answer::Decode(Reader& reader) {
  LW_TRY(ReadVersion(reader));
  LW_TRY(reader.String(&problem, kMaxSentence));
  LW_TRY(reader.String(&certificate, kMaxAnswerBytes));
  LW_TRY(reader.String(&authority, kMaxAnswerBytes));
  return reader.String(&server, kMaxServerText);
}

void InviteRequest::Encode(Writer& writer) const {
  writer.U8(kEnrolmentVersion);
  writer.String(name);
  writer.String(server);
  writer.U32(seconds);
}

WireResult InviteRequest::Decode(Reader& reader) {
  LW_TRY(ReadVersion(reader));
  LW_TRY(reader.String(&name, kMaxNameText));
  LW_TRY(reader.String(&server, kMaxServerText));
  return reader.U32(&seconds);
}

void InviteAnswer::Encode(Writer& writer) const {
  writer.U8(kEnrolmentVersion);
  writer.String(problem);
  writer.Raw(authority.data(), authority.size());
  writer.Raw(secret.data(), secret.size());
  writer.U16(port);
}

WireResult InviteAnswer::Decode(Reader& reader) {
  LW_TRY(ReadVersion(reader));
  LW_TRY(reader.String(&problem, kMaxSentence));
  LW_TRY(reader.Raw(authority.data(), authority.size()));
  LW_TRY(reader.Raw(secret.data(), secret.size()));
  return reader.U16(&port);
}

std::string Frame(const std::string& message) {
  Writer writer;
  writer.U32(static_cast<uint32_t>(message.size()));
  writer.Raw(message.data(), message.size());
  return {reinterpret_cast<const char*>(writer.data()), writer.size()};
}

FrameReader::State FrameReader::Add(std::span<const std::byte> bytes) {
  if (bytes.size() > kLengthBytes + most_ - bytes_.size()) return State::kBroken;
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  if (bytes_.size() < kLengthBytes) return State::kPartial;
  uint32_t length = 0;
  std::memcpy(&length, bytes_.data(), sizeof(length));
  if (length == 0 || length > most_ || bytes_.size() - kLengthBytes > length) {
    return State::kBroken;
  }
  return bytes_.size() - kLengthBytes == length ? State::kWhole : State::kPartial;
}

}  // namespace longwire::certificates
