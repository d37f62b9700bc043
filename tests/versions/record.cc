// Prints what this version makes of the samples, one to a line: its name, its bytes in hexadecimal.
#include <cstdio>

#include "tests/versions/samples.h"

int main() {
  constexpr auto kVersions = longwire::wire::kBuiltVersions;
  for (const auto& [name, bytes] : longwire::versions::AllSamples(kVersions)) {
    std::printf("%s ", name.c_str());
    for (std::byte byte : bytes) std::printf("%02x", static_cast<unsigned>(byte));
    std::printf("\n");
  }
}
