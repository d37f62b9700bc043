#include "link/transport/frame.h"

#include "wire/buffer.h"

namespace longwire::transport {
namespace {

std::string Text(wire::Writer& writer) {
  return {reinterpret_cast<const char*>(writer.data()), writer.size()};
}

}  // namespace

std::string EncodeAttach(const Attach& attach) {
  wire::Writer writer;
  writer.U64(attach.session);
  writer.Raw(attach.token.data(), attach.token.size());
  writer.U64(attach.resume_position);
  return Text(writer);
}

WireResult DecodeAttach(std::span<const std::byte> body, Attach* attach) {
  wire::Reader reader(body);
  LW_TRY(reader.U64(&attach->session));
  LW_TRY(reader.Raw(attach->token.data(), attach->token.size()));
  return reader.U64(&attach->resume_position);
}

std::string EncodeClosed(const Closed& closed) {
  wire::Writer writer;
  writer.U32(closed.code);
  writer.String(std::string_view(closed.sentence).substr(0, kMaxSentenceBytes));
  return Text(writer);
}

WireResult DecodeClosed(std::span<const std::byte> body, Closed* closed) {
  wire::Reader reader(body);
  LW_TRY(reader.U32(&closed->code));
  return reader.String(&closed->sentence, kMaxSentenceBytes);
}

}  // namespace longwire::transport
