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

WireResult Reader::Align(size_t alignment) {
  while (offset_ % alignment != 0) {
    uint8_t padding = 0;
    LW_TRY(U8(&padding));
  }
  return WireResult::kOk;
}

}  // namespace longwire::wire
