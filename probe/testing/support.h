// Objects, tools and PTX of this build, for tests of probes.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "policy/engine.h"
#include "probe/probe.h"
#include "probe/rewrite.h"
#include "softgpu/engine/test_device.h"

namespace longwire::probe::testing {

inline policy::Engine* TheEngine() {
  static std::string sentence;
  static policy::Engine* engine = policy::LoadEngine(&sentence, POLICY_ENGINE);
  return engine;
}

inline std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Verified, too.
inline std::optional<ProbeSet> TryLoad(const std::filesystem::path& path, std::string* sentence) {
  const std::string object = ReadFile(path);
  return LoadProbes(std::as_bytes(std::span(object)), TheEngine(), sentence);
}

inline ProbeSet Load(const std::filesystem::path& path) {
  std::string sentence;
  auto set = TryLoad(path, &sentence);
  EXPECT_TRUE(set) << path << ": " << sentence;
  return set ? *set : ProbeSet();
}

inline ProbeSet Object(const std::string& name) {
  return Load(std::filesystem::path(PROBE_OBJECTS) / (name + ".o"));
}
inline ProbeSet Tool(const std::string& name) {
  return Load(std::filesystem::path(PROBE_TOOLS) / (name + ".o"));
}

// The text with probes, on the software device.
inline softgpu::testing::Device Probed(const std::string& ptx, const ProbeSet& set) {
  std::string sentence;
  const auto rewritten = Rewrite(ptx, set, "*", &sentence);
  EXPECT_TRUE(rewritten) << sentence;
  const std::string text = rewritten ? rewritten->text : "";
  softgpu::Status status;
  auto program = softgpu::Program::Load(text, softgpu::testing::TestMemory::Get(), &status);
  EXPECT_TRUE(status.ok()) << status.message << "\n" << text;
  return softgpu::testing::Device(std::move(program));
}

// The values of a map's variable.
inline std::vector<uint64_t> Values(const softgpu::testing::Device& device,
                                    const std::string& map) {
  const softgpu::GlobalInfo& global = device.FindGlobal("longwire_map_" + map);
  const auto* values = reinterpret_cast<const uint64_t*>(global.address);
  return {values, values + global.bytes / sizeof(uint64_t)};
}

}  // namespace longwire::probe::testing
