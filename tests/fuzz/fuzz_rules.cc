// Rules as a worker may get them, and patterns of names: a packet of any bytes is decoded or
// refused, every decision about it ends, and a pattern matches what a plain recursion says. That
// any text is read as rules or refused with a place is fuzz_config's.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "server/rules/decide.h"
#include "server/rules/pattern.h"
#include "server/rules/rule.h"
#include "server/rules/sizes.h"

using namespace longwire;

namespace {

constexpr size_t kComparedLetters = 12;  // letters: the recursion takes a power of them

bool PlainlyMatches(std::string_view pattern, std::string_view text) {
  if (pattern.empty()) return text.empty();
  if (pattern[0] == '*') {
    return PlainlyMatches(pattern.substr(1), text) ||
           (!text.empty() && PlainlyMatches(pattern, text.substr(1)));
  }
  return !text.empty() && (pattern[0] == '?' || pattern[0] == text[0]) &&
         PlainlyMatches(pattern.substr(1), text.substr(1));
}

// In memory of just its size, so that one letter too many is seen.
struct Exact {
  explicit Exact(std::string_view text) : letters(new char[text.size()]), size(text.size()) {
    text.copy(letters.get(), text.size());
  }
  std::string_view view() const { return {letters.get(), size}; }
  std::unique_ptr<char[]> letters;
  size_t size;
};

void TryPatterns(std::string_view input) {
  const size_t middle = input.find('\0');
  if (middle == std::string_view::npos) return;
  const Exact pattern(input.substr(0, middle)), text(input.substr(middle + 1));
  const bool matches = rules::Matches(pattern.view(), text.view());
  const bool is_short = pattern.size <= kComparedLetters && text.size <= kComparedLetters;
  if (is_short && matches != PlainlyMatches(pattern.view(), text.view())) std::abort();
  (void)rules::MatchesProgram(pattern.view(), text.view());
  uint32_t sizes[3] = {};
  if (!rules::ParseSizes(text.view(), sizes)) return;
  for (uint32_t size : sizes) {
    if (size == 0) std::abort();
  }
}

void TryPacket(std::span<const std::byte> packet) {
  rules::RuleList list;
  if (message::Unpack(packet, &list) != wire::WireResult::kOk) return;
  (void)rules::DecideLaunch(list.rules, "3fa2", "_Z3AddPii");
  (void)rules::DecideJit(list.rules, "3fa2");
  (void)rules::DeniedBy(list.rules, "cuMemset", "");
  (void)rules::RetryOfAllocations(list.rules);
  rules::RuleList again;
  auto packed = message::Pack(list);
  if (message::Unpack(packed, &again) != wire::WireResult::kOk) std::abort();
  if (message::Pack(again) != packed) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  TryPatterns({reinterpret_cast<const char*>(data), size});
  TryPacket(std::as_bytes(std::span(data, size)));
  return 0;
}
