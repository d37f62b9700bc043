// The options of the processes that the warden starts: --name value. The last of a name counts.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace longwire {

// Of devices and descriptors.
inline constexpr int32_t kLargestNumber = 1 << 20;

struct ProcessOption {
  const char* name;
  // Text, a number, or numbers with commas between them.
  std::variant<std::string*, int64_t*, std::vector<int32_t>*> value;
  int64_t largest = kLargestNumber;  // of a number; those of a list are at most kLargestNumber
};

// Sets the values of the options in `words`, which are the program's arguments without its name.
// What is wrong with them; empty if nothing is.
std::string ParseProcessOptions(std::span<char* const> words,
                                std::span<const ProcessOption> options);

}  // namespace longwire
