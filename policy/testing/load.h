// Objects and the engine of this build, for tests.
#pragma once

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "policy/program.h"

namespace longwire::policy::testing {

inline Engine* TheEngine() {
  static std::string sentence;
  static Engine* engine = LoadEngine(&sentence, POLICY_ENGINE);
  return engine;
}

inline std::vector<std::byte> ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
  return {bytes, bytes + text.size()};
}

inline std::vector<std::byte> ObjectNamed(const std::string& name) {
  return ReadFile(std::filesystem::path(POLICY_OBJECTS) / (name + ".o"));
}

// Null with a sentence.
inline std::shared_ptr<Program> TryLoad(const std::string& name, std::string* sentence) {
  const auto object = ObjectNamed(name);
  return Program::Load(name, object, *TheEngine(), sentence);
}

}  // namespace longwire::policy::testing
