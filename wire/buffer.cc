#include "wire/buffer.h"

#include "wire/guards.h"

namespace longwire::wire {

std::byte* Writer::Grow(size_t bytes) {
  if (overflowed_) return nullptr;
  if (fixed_ == nullptr) {
    owned_.resize(size_ + bytes);
    std::byte* to = owned_.data() + size_;
    size_ += bytes;
    return to;
  }
  if (bytes > capacity_ - size_) {
    overflowed_ = true;
    return nullptr;
  }
  std::byte* to = fixed_ + size_;
  size_ += bytes;
  return to;
}

WireResult Reader::Raw(void* to, size_t bytes) {
  std::span<const std::byte> view;
  LW_TRY(View(bytes, &view));
  if (bytes != 0) std::memcpy(to, view.data(), bytes);
  return WireResult::kOk;
}

WireResult Reader::View(size_t bytes, std::span<const std::byte>* view) {
  if (failed_ || bytes > data_.size() - offset_) return Fail();
  *view = data_.subspan(offset_, bytes);
  offset_ += bytes;
  return WireResult::kOk;
}

WireResult Reader::Bytes(std::span<const std::byte>* view, size_t limit) {
  uint32_t length = 0;
  LW_TRY(U32(&length));
  if (length > limit) return Fail();
  if (kPlantedBug) data_ = {data_.data(), offset_ + length};  // believes the length
  return View(length, view);
}

WireResult Reader::String(std::string_view* text, size_t limit) {
  std::span<const std::byte> view;
  LW_TRY(Bytes(&view, limit));
  *text = std::string_view(reinterpret_cast<const char*>(view.data()), view.size());
  return WireResult::kOk;
}

WireResult Reader::String(std::string* text, size_t limit) {
  std::string_view view;
  LW_TRY(String(&view, limit));
  text->assign(view);
  return WireResult::kOk;
}

WireResult Reader::Count(uint32_t* count, size_t element_bytes, size_t limit) {
  LW_TRY(U32(count));
  if (*count > limit) return Fail();
  if (element_bytes != 0 && *count > remaining() / element_bytes) return Fail();
  return WireResult::kOk;
}

WireResult Reader::Align(size_t alignment) {
  while (offset_ % alignment != 0) {
    uint8_t padding = 0;
    LW_TRY(U8(&padding));
  }
  return WireResult::kOk;
}

}  // namespace longwire::wire
