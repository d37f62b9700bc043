// Packets of the local protocols of warden and keeper: a u32 kind, then the fields of one struct.
// A message is a struct with `static constexpr uint32_t kKind` and `Fields()`, a std::tie of its
// members: integers, bool, std::string, nested structs with Fields(), and vectors of these. What a
// later version added is a std::optional, the last of the members of a whole packet: it is set for
// peers of that version, and without it nothing is written.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "wire/buffer.h"

namespace longwire::message {

// Bounds of one packet: a packet itself is bounded by wire::kMaxMessageBytes.
inline constexpr size_t kMaxText = 32 << 10;      // bytes of one string
inline constexpr size_t kMaxElements = 16 << 10;  // elements of one vector

template <class T>
concept Struct = requires(T& value) {
  value.Fields();
};

template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;

template <class T>
void Encode(wire::Writer& writer, const T& value) {
  if constexpr (Struct<T>) {
    // Fields() hands out references for both directions; encoding only reads them.
    std::apply([&](const auto&... field) { (Encode(writer, field), ...); },
               const_cast<T&>(value).Fields());
  } else if constexpr (std::is_same_v<T, std::string>) {
    writer.String(value);
  } else if constexpr (std::is_same_v<T, bool>) {
    writer.U8(value ? 1 : 0);
  } else if constexpr (std::is_integral_v<T>) {
    writer.Raw(&value, sizeof(value));
  } else if constexpr (kIsOptional<T>) {
    if (value) Encode(writer, *value);
  } else {
    writer.U32(static_cast<uint32_t>(value.size()));
    for (const auto& element : value) Encode(writer, element);
  }
}

template <class T>
wire::WireResult Decode(wire::Reader& reader, T* value) {
  if constexpr (Struct<T>) {
    bool good = std::apply(
        [&](auto&... field) { return ((Decode(reader, &field) == wire::WireResult::kOk) && ...); },
        value->Fields());
    return good ? wire::WireResult::kOk : wire::WireResult::kFatal;
  } else if constexpr (std::is_same_v<T, std::string>) {
    return reader.String(value, kMaxText);
  } else if constexpr (std::is_same_v<T, bool>) {
    uint8_t byte = 0;
    LW_TRY(reader.U8(&byte));
    *value = byte != 0;
    return wire::WireResult::kOk;
  } else if constexpr (std::is_integral_v<T>) {
    return reader.Raw(value, sizeof(*value));
  } else if constexpr (kIsOptional<T>) {
    value->reset();
    if (reader.remaining() == 0) return wire::WireResult::kOk;
    return Decode(reader, &value->emplace());
  } else {
    uint32_t count = 0;
    LW_TRY(reader.Count(&count, 1, kMaxElements));
    value->clear();
    for (uint32_t i = 0; i < count; ++i) LW_TRY(Decode(reader, &value->emplace_back()));
    return wire::WireResult::kOk;
  }
}

// The packet of `message`.
template <class M>
std::vector<std::byte> Pack(const M& message) {
  wire::Writer writer;
  writer.U32(M::kKind);
  Encode(writer, message);
  return {writer.data(), writer.data() + writer.size()};
}

// The kind of a packet, 0 if it has none.
inline uint32_t KindOf(std::span<const std::byte> packet) {
  uint32_t kind = 0;
  wire::Reader reader(packet);
  return reader.U32(&kind) == wire::WireResult::kOk ? kind : 0;
}

// kFatal unless the packet is exactly one M.
template <class M>
wire::WireResult Unpack(std::span<const std::byte> packet, M* message) {
  wire::Reader reader(packet);
  uint32_t kind = 0;
  LW_TRY(reader.U32(&kind));
  if (kind != M::kKind) return wire::WireResult::kFatal;
  LW_TRY(Decode(reader, message));
  return reader.remaining() == 0 ? wire::WireResult::kOk : wire::WireResult::kFatal;
}

}  // namespace longwire::message
