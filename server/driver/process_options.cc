#include "server/driver/process_options.h"

#include <algorithm>
#include <utility>

#include "wire/number.h"

namespace longwire {
namespace {

// False if the text is no value of the option.
bool Set(const ProcessOption& option, const std::string& text) {
  if (auto* const* value = std::get_if<std::string*>(&option.value)) {
    **value = text;
    return true;
  }
  if (auto* const* value = std::get_if<int64_t*>(&option.value)) {
    auto number = wire::ParseNumber(text, 0, option.largest);
    if (number) **value = *number;
    return number.has_value();
  }
  auto numbers = wire::ParseNumbers(text, 0, kLargestNumber);
  if (numbers) *std::get<std::vector<int32_t>*>(option.value) = std::move(*numbers);
  return numbers.has_value();
}

}  // namespace

std::string ParseProcessOptions(std::span<char* const> words,
                                std::span<const ProcessOption> options) {
  if (words.size() % 2 != 0) return std::string(words.back()) + " needs a value";
  for (; !words.empty(); words = words.subspan(2)) {
    const std::string name = words[0], text = words[1];
    auto option =
        std::ranges::find_if(options, [&](const auto& each) { return name == each.name; });
    if (option == options.end()) return "unknown option '" + name + "'";
    if (!Set(*option, text)) return name + " expects a number, found '" + text + "'";
  }
  return {};
}

}  // namespace longwire
