#include "server/pool/keys.h"

#include <google/protobuf/util/json_util.h>
#include <openssl/sha.h>
#include <sys/random.h>

#include <array>
#include <utility>
#include <vector>

#include "server/pool/unknown_members.h"

namespace longwire::pool {
namespace {

constexpr size_t kLongestNumber = 64;

std::string Hexadecimal(const unsigned char* bytes, size_t count) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (size_t i = 0; i < count; ++i) {
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 15];
  }
  return text;
}

}  // namespace

std::string Encode(const google::protobuf::Message& record) {
  std::string text;
  google::protobuf::util::JsonPrintOptions options;
  options.always_print_primitive_fields = true;
  // It fails for text that is not UTF-8 only, which callers do not have.
  if (!google::protobuf::util::MessageToJsonString(record, &text, options).ok()) return {};
  return WithUnknownMembers(record, std::move(text));
}

bool Decode(const std::string& text, google::protobuf::Message* record) {
  google::protobuf::util::JsonParseOptions options;
  record->Clear();
  if (google::protobuf::util::JsonStringToMessage(text, record, options).ok()) {
    NoteText({}, record);  // only what is noted here counts
    return true;
  }
  options.ignore_unknown_fields = true;
  record->Clear();
  if (!google::protobuf::util::JsonStringToMessage(text, record, options).ok()) return false;
  NoteText(text, record);
  return true;
}

std::string NumberOfPlace(std::string_view number, size_t place) {
  return std::string(number) + (place == 0 ? "" : "-e" + std::to_string(place));
}

bool IsNumber(std::string_view text) {
  return !text.empty() && text.size() <= kLongestNumber &&
         text.find_first_not_of("0123456789abcdef-") == std::string_view::npos;
}

std::string HashOf(std::string_view ticket) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> hash{};
  SHA256(reinterpret_cast<const unsigned char*>(ticket.data()), ticket.size(), hash.data());
  return Hexadecimal(hash.data(), hash.size());
}

std::string RandomHex(size_t bytes) {
  std::vector<unsigned char> random(bytes);
  if (getrandom(random.data(), bytes, 0) != static_cast<ssize_t>(bytes)) return {};
  return Hexadecimal(random.data(), bytes);
}

}  // namespace longwire::pool
