// What a version before made of the samples (samples.h), as record.cc printed it.
#pragma once

#include <cstddef>
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace longwire::versions {

// By the sample's name; empty if there is no such file.
inline std::map<std::string, std::vector<std::byte>> ReadFixtures(const std::string& path) {
  std::map<std::string, std::vector<std::byte>> all;
  std::ifstream file(path);
  for (std::string name, digits; file >> name >> digits;) {
    std::vector<std::byte>& bytes = all[name];
    for (size_t i = 0; i + 1 < digits.size(); i += 2) {
      bytes.push_back(static_cast<std::byte>(std::stoi(digits.substr(i, 2), nullptr, 16)));
    }
  }
  return all;
}

}  // namespace longwire::versions
