// Flat little-endian encoding. The writer appends to memory of its own or of the caller; the reader
// moves pointer and remaining length together and fails for good at the first read past the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "wire/result.h"

namespace longwire::wire {

// Appends values. With a fixed span it never allocates; if a value does not fit, overflowed() is
// true and nothing more is written. Without one it grows a vector.
class Writer {
 public:
  Writer() = default;
  explicit Writer(std::span<std::byte> fixed) : fixed_(fixed.data()), capacity_(fixed.size()) {}

  void U8(uint8_t value) { Value(value); }
  void U16(uint16_t value) { Value(value); }
  void U32(uint32_t value) { Value(value); }
  void U64(uint64_t value) { Value(value); }
  void I32(int32_t value) { Value(value); }
  void I64(int64_t value) { Value(value); }
  void F32(float value) { Value(value); }
  void F64(double value) { Value(value); }
  void Raw(const void* data, size_t bytes) {
    std::byte* to = Grow(bytes);
    if (to != nullptr && bytes != 0) std::memcpy(to, data, bytes);
  }
  // A u32 length, then the bytes.
  void Bytes(std::span<const std::byte> data) {
    U32(static_cast<uint32_t>(data.size()));
    Raw(data.data(), data.size());
  }
  void String(std::string_view text) { Bytes(std::as_bytes(std::span(text))); }
  // Zeros up to the next multiple of `alignment` (a power of two).
  void Align(size_t alignment) {
    while (size_ % alignment != 0 && !overflowed_) U8(0);
  }
  // Appends `bytes` uninitialised bytes and returns where they are; nullptr if they do not fit. The
  // pointer is good until the next append.
  std::byte* Grow(size_t bytes);

  size_t size() const { return size_; }
  bool overflowed() const { return overflowed_; }
  std::byte* data() { return fixed_ != nullptr ? fixed_ : owned_.data(); }
  const std::byte* data() const { return fixed_ != nullptr ? fixed_ : owned_.data(); }
  std::span<const std::byte> span() const { return {data(), size_}; }

 private:
  template <class T>
  void Value(T value) {
    std::byte* to = Grow(sizeof(T));
    if (to != nullptr) std::memcpy(to, &value, sizeof(T));
  }

  std::byte* fixed_ = nullptr;
  size_t capacity_ = 0;
  size_t size_ = 0;
  bool overflowed_ = false;
  std::vector<std::byte> owned_;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> data) : data_(data) {}

  WireResult U8(uint8_t* value) { return Value(value); }
  WireResult U16(uint16_t* value) { return Value(value); }
  WireResult U32(uint32_t* value) { return Value(value); }
  WireResult U64(uint64_t* value) { return Value(value); }
  WireResult I32(int32_t* value) { return Value(value); }
  WireResult I64(int64_t* value) { return Value(value); }
  WireResult F32(float* value) { return Value(value); }
  WireResult F64(double* value) { return Value(value); }
  WireResult Raw(void* to, size_t bytes) {
    std::span<const std::byte> view;
    LW_TRY(View(bytes, &view));
    if (bytes != 0) std::memcpy(to, view.data(), bytes);
    return WireResult::kOk;
  }
  // A view of `bytes` bytes in the buffer itself.
  WireResult View(size_t bytes, std::span<const std::byte>* view) {
    if (failed_ || bytes > data_.size() - offset_) return Fail();
    *view = data_.subspan(offset_, bytes);
    offset_ += bytes;
    return WireResult::kOk;
  }
  // Length-prefixed; fails if the length is more than `limit` or than what is left.
  WireResult Bytes(std::span<const std::byte>* view, size_t limit = SIZE_MAX);
  WireResult String(std::string_view* text, size_t limit = SIZE_MAX);
  WireResult String(std::string* text, size_t limit = SIZE_MAX);
  // A u32 count of elements; fails if they cannot fit into the rest at `element_bytes` each.
  WireResult Count(uint32_t* count, size_t element_bytes, size_t limit) {
    LW_TRY(U32(count));
    if (*count > limit) return Fail();
    if (element_bytes != 0 && *count > remaining() / element_bytes) return Fail();
    return WireResult::kOk;
  }
  WireResult Align(size_t alignment);

  size_t remaining() const { return failed_ ? 0 : data_.size() - offset_; }
  size_t offset() const { return offset_; }
  bool failed() const { return failed_; }

 private:
  template <class T>
  WireResult Value(T* value) {
    return Raw(value, sizeof(T));
  }
  WireResult Fail() {
    failed_ = true;
    return WireResult::kFatal;
  }

  std::span<const std::byte> data_;
  size_t offset_ = 0;
  bool failed_ = false;
};

}  // namespace longwire::wire
