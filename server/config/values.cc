#include "server/config/values.h"

#include <cctype>
#include <charconv>
#include <string_view>

#include "link/certificates/address.h"
#include "server/config/text.h"
#include "server/config/units.h"

namespace longwire::config {
namespace {

// "4096", "512MiB", "8 GiB", "2ms".
bool ParseNumber(std::string_view text, Kind kind, uint64_t* value, std::string* hint) {
  size_t digits = text.find_first_not_of("0123456789");
  std::string_view unit = digits == std::string_view::npos ? "" : text.substr(digits);
  text = text.substr(0, digits);
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  if (error != std::errc() || end != text.data() + text.size()) return false;
  if (unit.empty() && (kind == PLAIN || *value == 0)) return true;
  if (unit.starts_with(' ')) unit.remove_prefix(1);
  for (const Unit& known : UnitsOf(kind)) {
    if (known.name == unit) return !__builtin_mul_overflow(*value, known.size, value);
  }
  if (kind != PLAIN) *hint = "the unit is one of " + UnitNames(kind);
  return false;
}

bool SetNumber(const std::string& text, const FieldDescriptor* field, Message* message,
               std::string* hint) {
  const Entry& entry = EntryOf(field);
  uint64_t value = kForever;
  if (entry.forever_allowed() && text == "forever") {
    message->GetReflection()->SetUInt64(message, field, value);
    return true;
  }
  if (!ParseNumber(text, entry.kind(), &value, hint)) return false;
  if (value < entry.least() || value > LargestValue(field)) return false;
  if (entry.multiple_of() != 0 && value % entry.multiple_of() != 0) {
    uint64_t below = value - value % entry.multiple_of();
    *hint = UnitText(entry.kind(), below) + " would be one";
    return false;
  }
  const auto* reflection = message->GetReflection();
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_UINT32) {
    reflection->SetUInt32(message, field, static_cast<uint32_t>(value));
  } else {
    reflection->SetUInt64(message, field, value);
  }
  return true;
}

// Rewritten as it is written everywhere: host:port.
bool CheckAddress(std::string* text, std::string* hint) {
  constexpr size_t kLongest = 300;  // a name in the DNS has 253
  constexpr std::string_view kLetters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.%:[]";
  if (text->size() > kLongest || text->find_first_not_of(kLetters) != std::string::npos) {
    *hint = "a host is a name of letters, digits, '-' and '.', or an address";
    return false;
  }
  auto address = transport::ParseAddress(*text, hint);
  if (!address) return false;
  if (text->ends_with("]") || text->find(':') == std::string::npos) {
    const bool number = text->find_first_not_of("0123456789") == std::string::npos;
    *hint = number ? "the host is missing; 127.0.0.1:" + *text + " is that port on this host"
                   : "the port is missing; " + address->Text() + " has the usual one";
    return false;
  }
  *text = address->Text();
  return true;
}

bool IsName(const std::string& text) {
  constexpr std::string_view kLetters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
  return !text.empty() && text.size() <= kLongestName &&
         text.find_first_not_of(kLetters) == std::string::npos;
}

bool CheckIdentity(const std::string& text, std::string* hint) {
  constexpr std::string_view kUser = "uid:";
  if (text.starts_with(kUser)) {
    uint32_t number = 0;
    const char* last = text.data() + text.size();
    auto [end, error] = std::from_chars(text.data() + kUser.size(), last, number);
    if (error == std::errc() && end == last) return true;
    *hint = "what follows uid: is a number, as `id -u` prints it";
    return false;
  }
  // X.509 allows a common name that many letters; blanks around it are a mistake.
  if (text.empty() || text.front() == ' ' || text.back() == ' ') return false;
  *hint = "a common name has at most 64 letters";
  return text.size() <= kLongestName;
}

bool CheckString(const FieldDescriptor* field, std::string* text, std::string* hint) {
  const Entry& entry = EntryOf(field);
  if (!IsLine(*text)) {
    *hint = "it has a line's end, another control character or a byte that is not UTF-8";
    return false;
  }
  if (entry.none_allowed() && *text == "none") return true;
  if (entry.most() != 0 && text->size() > entry.most()) {
    *hint = "it has " + std::to_string(text->size()) + " letters, " + std::to_string(entry.most()) +
            " are possible";
    return false;
  }
  switch (entry.kind()) {
    case PATH:
      return text->starts_with('/');
    case ADDRESS:
      return CheckAddress(text, hint);
    case NAME:
      return IsName(*text);
    case DRIVER:
      return *text == "auto" || *text == "software" || text->starts_with('/');
    case IDENTITY:
      return CheckIdentity(*text, hint);
    default:
      return true;
  }
}

bool SetString(std::string text, const FieldDescriptor* field, Message* message,
               std::string* hint) {
  if (!CheckString(field, &text, hint)) return false;
  if (field->is_repeated()) {
    message->GetReflection()->AddString(message, field, std::move(text));
  } else {
    message->GetReflection()->SetString(message, field, std::move(text));
  }
  return true;
}

}  // namespace

bool SetValue(const std::string& text, const FieldDescriptor* field, Message* message,
              std::string* hint) {
  const auto* reflection = message->GetReflection();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      if (text != "true" && text != "false") return false;
      reflection->SetBool(message, field, text == "true");
      return true;
    case FieldDescriptor::CPPTYPE_ENUM: {
      const auto* word = field->enum_type()->FindValueByName(text);
      if (word != nullptr) reflection->SetEnum(message, field, word);
      return word != nullptr;
    }
    case FieldDescriptor::CPPTYPE_STRING:
      return SetString(text, field, message, hint);
    default:
      return SetNumber(text, field, message, hint);
  }
}

std::string ValueText(const Message& message, const FieldDescriptor* field, int index) {
  const auto* reflection = message.GetReflection();
  Kind kind = EntryOf(field).kind();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection->GetBool(message, field) ? "true" : "false";
    case FieldDescriptor::CPPTYPE_ENUM:
      return reflection->GetEnum(message, field)->name();
    case FieldDescriptor::CPPTYPE_STRING:
      return field->is_repeated() ? reflection->GetRepeatedString(message, field, index)
                                  : reflection->GetString(message, field);
    case FieldDescriptor::CPPTYPE_UINT32:
      return UnitText(kind, reflection->GetUInt32(message, field));
    default:
      return UnitText(kind, reflection->GetUInt64(message, field));
  }
}

}  // namespace longwire::config
