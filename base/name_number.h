// By which policies know a tenant or a kernel: the FNV-1a hash of its name (docs/policies.md).
#pragma once

#include <cstdint>
#include <string_view>

namespace longwire::base {

constexpr uint64_t NumberOfName(std::string_view name) {
  uint64_t number = 0xcbf29ce484222325;
  for (char letter : name) {
    number = (number ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
  }
  return number;
}

}  // namespace longwire::base
