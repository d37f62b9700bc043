// What the generated encoders and decoders are made of. Neighbouring fields of fixed size are
// written and read as one piece; everything that has a length is checked against what is left.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "wire/buffer.h"
#include "wire/limits.h"

namespace longwire::calls {

template <class T>
inline void Store(std::byte*& at, const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::memcpy(at, &value, sizeof(T));
  at += sizeof(T);
}

inline void Load(const std::byte*& at, bool* value) {
  *value = *at != std::byte{0};
  at += 1;
}

template <class T>
inline void Load(const std::byte*& at, T* value) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::memcpy(value, at, sizeof(T));
  at += sizeof(T);
}

inline void PutOne(wire::Writer& writer, std::string_view text) { writer.String(text); }
inline void PutOne(wire::Writer& writer, std::span<const std::byte> data) { writer.Bytes(data); }
template <class T>
void PutOne(wire::Writer& writer, const T& value) {
  if constexpr (std::is_trivially_copyable_v<T> && !std::is_class_v<T>) {
    writer.Raw(&value, sizeof(T));
  } else if constexpr (requires { value.Encode(writer); }) {
    value.Encode(writer);
  } else {
    writer.Raw(value.data(), value.size());  // std::array of bytes
  }
}

inline wire::WireResult GetOne(wire::Reader& reader, std::string_view* text) {
  return reader.String(text);
}
inline wire::WireResult GetOne(wire::Reader& reader, std::span<const std::byte>* data) {
  return reader.Bytes(data);
}
template <class T>
wire::WireResult GetOne(wire::Reader& reader, T* value) {
  if constexpr (requires { value->Decode(reader); }) {
    return value->Decode(reader);
  } else {
    return reader.Raw(value, sizeof(T));
  }
}

// The fewest bytes that one element can take: bounds a count by what is left.
template <class T>
constexpr size_t LeastBytes() {
  if constexpr (requires { T::kLeastBytes; }) {
    return T::kLeastBytes;
  } else if constexpr (std::is_same_v<T, std::string_view> ||
                       std::is_same_v<T, std::span<const std::byte>>) {
    return sizeof(uint32_t);
  } else {
    return sizeof(T);
  }
}

// Elements that are copied as they lie in memory.
template <class T>
inline constexpr bool kFlat = !requires(T value, wire::Reader& reader) {
  value.Decode(reader);
}
&&!std::is_same_v<T, std::string_view> && !std::is_same_v<T, std::span<const std::byte>>;

template <class T>
void Put(wire::Writer& writer, const std::vector<T>& list) {
  writer.U32(static_cast<uint32_t>(list.size()));
  if constexpr (kFlat<T>) {
    writer.Raw(list.data(), list.size() * sizeof(T));
  } else {
    for (const T& element : list) PutOne(writer, element);
  }
}

template <class T>
inline wire::WireResult Get(wire::Reader& reader, std::vector<T>* list) {
  uint32_t count = 0;
  LW_TRY(reader.Count(&count, LeastBytes<T>(), wire::kMaxRecordBytes));
  list->resize(count);
  if constexpr (kFlat<T>) {
    return reader.Raw(list->data(), count * sizeof(T));
  } else {
    for (T& element : *list) LW_TRY(GetOne(reader, &element));
    return wire::WireResult::kOk;
  }
}

template <class T>
void Put(wire::Writer& writer, const std::optional<T>& value) {
  writer.U8(value.has_value() ? 1 : 0);
  if (value.has_value()) PutOne(writer, *value);
}

template <class T>
wire::WireResult Get(wire::Reader& reader, std::optional<T>* value) {
  uint8_t present = 0;
  LW_TRY(reader.U8(&present));
  value->reset();
  if (present == 0) return wire::WireResult::kOk;
  return GetOne(reader, &value->emplace());
}

// What Put appends.
inline size_t Size(std::string_view text) { return sizeof(uint32_t) + text.size(); }
inline size_t Size(std::span<const std::byte> data) { return sizeof(uint32_t) + data.size(); }
template <class T>
size_t Size(const T& value) {
  if constexpr (requires { value.EncodedBytes(); }) {
    return value.EncodedBytes();
  } else {
    return sizeof(T);
  }
}
template <class T>
size_t Size(const std::vector<T>& list) {
  if constexpr (kFlat<T>) return sizeof(uint32_t) + list.size() * sizeof(T);
  size_t bytes = sizeof(uint32_t);
  for (const T& element : list) bytes += Size(element);
  return bytes;
}
template <class T>
size_t Size(const std::optional<T>& value) {
  return value.has_value() ? 1 + Size(*value) : 1;
}

template <class T>
void Put(wire::Writer& writer, const T& value) {
  PutOne(writer, value);
}
template <class T>
wire::WireResult Get(wire::Reader& reader, T* value) {
  return GetOne(reader, value);
}

}  // namespace longwire::calls
