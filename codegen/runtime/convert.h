// Between C parameters and the fields of the calls' structs, for the generated code of both ends.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace longwire::calls {

// Elements of one array parameter: three lists of 8-byte elements fit into one record of 1 MiB. The
// longest that real programs pass are lists of graph nodes.
inline constexpr uint64_t kMaxElements = 40000;

// A struct without host pointers travels as its bytes; the sizes are checked against cuda.h here.
template <class T, size_t N>
void Pack(const T& value, std::array<std::byte, N>* bytes) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) == N);
  std::memcpy(bytes->data(), &value, N);
}

template <class T, size_t N>
void Unpack(const std::array<std::byte, N>& bytes, T* value) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) == N);
  std::memcpy(value, bytes.data(), N);
}

// Numbers, enums and device pointers.
template <class From, class To>
void Convert(const From& from, To* to) {
  *to = (To)(from);  // a C cast: it is either static_cast or, for device pointers, reinterpret_cast
}
template <class T, size_t N>
void Convert(const T& value, std::array<std::byte, N>* bytes) {
  Pack(value, bytes);
}
template <class T, size_t N>
void Convert(const std::array<std::byte, N>& bytes, T* value) {
  Unpack(bytes, value);
}

// How many elements an array parameter has: none if it is null. False if they are too many. Only a
// count with a sign can be negative: the driver takes others for very many.
template <class Count>
bool Elements(const void* array, Count count, int minus, size_t* elements) {
  *elements = 0;
  if (array == nullptr || std::cmp_less_equal(count, minus)) return true;
  const uint64_t wanted = static_cast<uint64_t>(count) - minus;
  if (wanted > kMaxElements) return false;
  *elements = static_cast<size_t>(wanted);
  return true;
}

// The driver's lists: how many elements there is room for, and then how many there are. Room for
// more than can travel is used by no list that is let through.
template <class Count>
Count RoomOf(Count count) {
  return static_cast<Count>(std::min<uint64_t>(count, kMaxElements));
}
// False if a list may be longer than what has travelled of it, or than the room: the program reads
// as many elements as were found.
template <class Count>
bool FitsRoom(const void* list, Count room, uint64_t found) {
  if (list == nullptr) return true;
  return found <= static_cast<uint64_t>(room) && (room <= kMaxElements || found < kMaxElements);
}
// A list without room is not the same to the driver as none.
template <class T>
T* RoomIn(std::vector<T>& list) {
  list.reserve(1);
  return list.data();
}

// Whether an array that arrived with `elements` elements (none: it was null) is as long as the
// parameter that counts it says.
template <class Count>
bool CountFits(size_t elements, Count count, int minus) {
  return elements == 0 || static_cast<int64_t>(count) - minus == static_cast<int64_t>(elements);
}

template <class From, class To>
void ConvertList(const From* from, size_t count, std::vector<To>* to) {
  to->resize(count);
  for (size_t i = 0; i < count; ++i) Convert(from[i], &(*to)[i]);
}

// Text into a buffer of `capacity` bytes, cut if need be, with a zero at its end.
template <class Count>
void CopyText(std::string_view text, char* buffer, Count capacity) {
  if (static_cast<int64_t>(capacity) <= 0) return;
  const size_t bytes = std::min(text.size(), static_cast<size_t>(capacity) - 1);
  std::memcpy(buffer, text.data(), bytes);
  buffer[bytes] = '\0';
}

}  // namespace longwire::calls
