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
  writer.U64(attach.consumed);
  writer.U64(attach.kept_bytes);
  writer.U64(attach.room_bytes);
  writer.U32(attach.lane);
  writer.U32(attach.packing);
  if (attach.understands_terms != 0 || attach.offer) writer.U32(attach.understands_terms);
  if (attach.offer) writer.Raw(attach.offer->data(), attach.offer->size());
  return Text(writer);
}

WireResult DecodeAttach(std::span<const std::byte> body, Attach* attach) {
  wire::Reader reader(body);
  LW_TRY(reader.U64(&attach->session));
  LW_TRY(reader.Raw(attach->token.data(), attach->token.size()));
  LW_TRY(reader.U64(&attach->resume_position));
  LW_TRY(reader.U64(&attach->consumed));
  LW_TRY(reader.U64(&attach->kept_bytes));
  LW_TRY(reader.U64(&attach->room_bytes));
  LW_TRY(reader.U32(&attach->lane));
  LW_TRY(reader.U32(&attach->packing));
  if (reader.remaining() == 0) return WireResult::kOk;
  LW_TRY(reader.U32(&attach->understands_terms));
  if (reader.remaining() == 0) return WireResult::kOk;
  attach->offer.emplace();
  return reader.Raw(attach->offer->data(), attach->offer->size());
}

std::string EncodeAttached(const Attached& attached) {
  wire::Writer writer;
  writer.Raw(attached.token.data(), attached.token.size());
  writer.U64(attached.kept_bytes);
  writer.U64(attached.room_bytes);
  writer.U32(attached.packing);
  return Text(writer);
}

WireResult DecodeAttached(std::span<const std::byte> body, Attached* attached) {
  wire::Reader reader(body);
  LW_TRY(reader.Raw(attached->token.data(), attached->token.size()));
  LW_TRY(reader.U64(&attached->kept_bytes));
  LW_TRY(reader.U64(&attached->room_bytes));
  return reader.U32(&attached->packing);
}

std::string EncodeTerms(const Terms& terms) {
  wire::Writer writer;
  writer.U32(terms.resume_grace_milliseconds);
  writer.U32(terms.packing);
  if (terms.awake_microseconds != 0) writer.U32(terms.awake_microseconds);
  return Text(writer);
}

WireResult DecodeTerms(std::span<const std::byte> body, Terms* terms) {
  wire::Reader reader(body);
  LW_TRY(reader.U32(&terms->resume_grace_milliseconds));
  LW_TRY(reader.U32(&terms->packing));
  return reader.remaining() == 0 ? WireResult::kOk : reader.U32(&terms->awake_microseconds);
}

std::string EncodeMoved(const Moved& moved) {
  wire::Writer writer;
  writer.U64(moved.session);
  writer.String(std::string_view(moved.server).substr(0, kMaxServerBytes));
  return Text(writer);
}

WireResult DecodeMoved(std::span<const std::byte> body, Moved* moved) {
  wire::Reader reader(body);
  LW_TRY(reader.U64(&moved->session));
  return reader.String(&moved->server, kMaxServerBytes);
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
