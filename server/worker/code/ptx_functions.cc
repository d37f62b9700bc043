#include "server/worker/code/ptx_functions.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace longwire::worker {
namespace {

constexpr uint64_t kParameterBytesLimit = 32764;  // of all parameters of a function
constexpr std::string_view kSpace = " \t\r\n";

// `text` without its comments, which may have any words in them.
std::string WithoutComments(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  while (!text.empty()) {
    size_t begin = text.find('/');
    plain += text.substr(0, begin);
    if (begin == text.npos) break;
    text.remove_prefix(begin);
    if (text.starts_with("//")) {
      text.remove_prefix(std::min(text.find('\n'), text.size()));
    } else if (text.starts_with("/*")) {
      size_t end = text.find("*/", 2);
      text.remove_prefix(end == text.npos ? text.size() : end + 2);
      plain += ' ';
    } else {
      plain += '/';
      text.remove_prefix(1);
    }
  }
  return plain;
}

std::string_view TakeWord(std::string_view* text) {
  text->remove_prefix(std::min(text->find_first_not_of(kSpace), text->size()));
  std::string_view word = text->substr(0, text->find_first_of(kSpace));
  text->remove_prefix(word.size());
  return word;
}

std::optional<uint64_t> Number(std::string_view digits) {
  uint64_t number = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || number > kParameterBytesLimit) return std::nullopt;
  return number;
}

struct Declared {
  uint64_t element = 0;    // bytes; 0: no type was there
  uint64_t alignment = 0;  // 0: that of the element
  uint64_t count = 1;
};

// ".param .align 8 .b8 name[24]", ".param .u64 .ptr .global .align 4 name": what stands behind .ptr
// is of the memory that the parameter points to.
std::optional<Declared> ReadParameter(std::string_view text) {
  Declared declared;
  if (TakeWord(&text) != ".param") return std::nullopt;
  bool of_pointer = false;
  while (true) {
    std::string_view word = TakeWord(&text);
    if (word == ".align") {
      auto number = Number(TakeWord(&text));
      if (!number || *number == 0) return std::nullopt;
      if (!of_pointer) declared.alignment = *number;
    } else if (word == ".ptr") {
      of_pointer = true;
    } else if (word == ".texref" || word == ".samplerref" || word == ".surfref") {
      declared.element = 8;
    } else if (word.starts_with('.')) {
      size_t digits = word.find_first_of("0123456789");
      auto bits = digits == word.npos ? std::nullopt : Number(word.substr(digits));
      if (bits && declared.element == 0) declared.element = *bits / 8;
    } else if (word.empty()) {
      return std::nullopt;
    } else {
      size_t bracket = word.find('[');
      if (bracket != word.npos) {
        auto count = Number(word.substr(bracket + 1));
        if (!count) return std::nullopt;
        declared.count = *count;
      }
      break;
    }
  }
  if (declared.element == 0) return std::nullopt;
  if (declared.alignment == 0) declared.alignment = declared.element;
  return declared;
}

std::optional<FunctionParameters> ReadParameters(std::string_view text) {
  FunctionParameters places;
  uint64_t offset = 0;
  while (text.find_first_not_of(kSpace) != text.npos) {
    size_t comma = text.find(',');
    auto declared = ReadParameter(text.substr(0, comma));
    text.remove_prefix(comma == text.npos ? text.size() : comma + 1);
    if (!declared) return std::nullopt;
    offset = (offset + declared->alignment - 1) / declared->alignment * declared->alignment;
    const uint64_t bytes = declared->element * declared->count;
    if (bytes > kParameterBytesLimit || offset > kParameterBytesLimit - bytes) return std::nullopt;
    places.push_back({static_cast<uint32_t>(offset), static_cast<uint32_t>(bytes)});
    offset += bytes;
  }
  return places;
}

}  // namespace

void FunctionsOfPtx(std::string_view text, std::map<std::string, FunctionParameters>* functions) {
  constexpr std::string_view kEntry = ".entry";
  if (text.find(kEntry) == text.npos) return;
  const std::string plain = WithoutComments(text);
  std::string_view rest = plain;
  for (size_t at = rest.find(kEntry); at != rest.npos; at = rest.find(kEntry)) {
    rest.remove_prefix(at + kEntry.size());
    if (rest.empty() || kSpace.find(rest.front()) == kSpace.npos) continue;
    rest.remove_prefix(std::min(rest.find_first_not_of(kSpace), rest.size()));
    std::string name(rest.substr(0, rest.find_first_of(" \t\r\n({;")));
    rest.remove_prefix(name.size());
    size_t begin = rest.find_first_not_of(kSpace);
    std::optional<FunctionParameters> places = FunctionParameters();
    if (begin != rest.npos && rest[begin] == '(') {
      size_t end = std::min(rest.find(')'), rest.size());
      places = ReadParameters(rest.substr(begin + 1, end - begin - 1));
    }
    if (places && !name.empty()) (*functions)[name] = std::move(*places);
  }
}

}  // namespace longwire::worker
