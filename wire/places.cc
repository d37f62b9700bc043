#include "wire/places.h"

#include "wire/limits.h"
#include "wire/versions.h"

namespace longwire::wire {
namespace {

constexpr uint32_t kMagic = 0x4c50574c;  // "LWPL"
constexpr size_t kMaxText = 256;         // bytes of a name, an address, a number or a ticket
constexpr std::string_view kDigits = "0123456789abcdef";

}  // namespace

std::string Place::Text() const {
  std::string text = number + ":";
  for (unsigned char byte : ticket) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

bool ReadPlace(std::string_view text, std::string* number, std::string* ticket) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos || colon == 0) return false;
  *number = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  if (digits.empty() || digits.size() % 2 != 0) return false;
  ticket->clear();
  for (size_t i = 0; i < digits.size(); i += 2) {
    const size_t high = kDigits.find(digits[i]), low = kDigits.find(digits[i + 1]);
    if (high == std::string_view::npos || low == std::string_view::npos) return false;
    *ticket += static_cast<char>(high << 4 | low);
  }
  return true;
}

void PlaceList::Encode(Writer& writer) const {
  writer.U32(kMagic);
  writer.U32(static_cast<uint32_t>(places.size()));
  for (const Place& place : places) {
    for (const std::string* text : {&place.host, &place.address, &place.number, &place.ticket}) {
      writer.String(*text);
    }
    writer.U32(place.devices);
  }
}

WireResult PlaceList::Decode(Reader& reader) {
  LW_TRY(DecodeMagic(reader, kMagic));
  uint32_t count = 0;
  LW_TRY(reader.Count(&count, 5 * sizeof(uint32_t), kMaxServers));
  if (count < 2) return WireResult::kFatal;
  places.resize(count);
  for (Place& place : places) {
    for (std::string* text : {&place.host, &place.address, &place.number, &place.ticket}) {
      LW_TRY(reader.String(text, kMaxText));
    }
    LW_TRY(reader.U32(&place.devices));
  }
  return WireResult::kOk;
}

bool IsPlaces(std::span<const std::byte> message) {
  Reader reader(message);
  return DecodeMagic(reader, kMagic) == WireResult::kOk;
}

}  // namespace longwire::wire
