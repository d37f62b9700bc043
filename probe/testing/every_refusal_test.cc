// Every refusal of probes' verifier and of the rewriter of PTX, each provoked by an input.
#include <cstring>
#include <filesystem>
#include <fstream>

#include "policy/access.h"
#include "policy/testing/refusal_table.h"
#include "probe/image.h"
#include "probe/include/longwire/probe.h"
#include "probe/testing/support.h"
#include "probe/translate.h"
#include "probe/triton.h"
#include "wire/fat_binary.h"

namespace longwire::probe::testing {
namespace {

namespace fs = std::filesystem;
using policy::Instruction;

Instruction I(uint8_t code, uint8_t target = 0, uint8_t source = 0, int16_t offset = 0,
              int32_t immediate = 0) {
  return {code, static_cast<uint8_t>(target | source << 4), offset, immediate};
}

// What the translation says of a function of its own; it names the instruction.
std::string OfCode(std::vector<Instruction> instructions) {
  policy::HookCode code;
  code.function = "made";
  code.instructions = std::move(instructions);
  std::map<uint32_t, policy::Place> places;
  std::string sentence;
  EXPECT_TRUE(policy::CheckAccess(code, sizeof(lw_point), &sentence, &places)) << sentence;
  Probe probe;
  EXPECT_FALSE(Translate(code, places, {}, &probe, &sentence));
  EXPECT_TRUE(sentence.starts_with("made (instruction ")) << sentence;
  return sentence;
}

const std::vector<Instruction> kCodes[] = {
    {I(0xb7), I(0xe7), I(0x95)},                          // computes in a way of its own
    {I(0xb7), I(0xe5), I(0x95)},                          // jumps so
    {I(0xb7, 2), I(0x7b, 10, 2, -12), I(0xb7), I(0x95)},  // across two variables
    {I(0x79, 2, 1, 4), I(0xb7), I(0x95)},                 // across two fields
    {I(0xb7, 2), I(0xdb, 10, 2, -8), I(0xb7), I(0x95)},   // an atomic operation
    {I(0xb7, 2), I(0x7b, 1, 2), I(0xb7), I(0x95)},        // writes its argument
};

// What comes of an object of which each `from` is `to`.
std::string OfChanged(const std::string& name, const std::string& from, const std::string& to) {
  std::string object = ReadFile(fs::path(PROBE_OBJECTS) / (name + ".o"));
  EXPECT_NE(std::string::npos, object.find(from)) << name;
  for (size_t at = object.find(from); at != std::string::npos; at = object.find(from, at)) {
    object.replace(at, from.size(), to);
  }
  std::string sentence;
  EXPECT_FALSE(LoadProbes(std::as_bytes(std::span(object)), nullptr, &sentence)) << to;
  return sentence;
}

std::string OfText(int line, const std::string& ptx, const ProbeSet& set) {
  std::string sentence;
  EXPECT_FALSE(Rewrite(ptx, set, "*", &sentence)) << ptx.substr(0, 300);
  EXPECT_TRUE(sentence.starts_with("PTX line " + std::to_string(line) + ": ")) << sentence;
  return sentence;
}

std::string Module(const std::string& head, const std::string& body) {
  return head + ".visible .entry Kernel()\n{\n" + body + "ret;\n}\n";
}

constexpr char kHead[] = ".version 8.0\n.target sm_90\n.address_size 64\n";

std::vector<std::string> OfTexts() {
  const ProbeSet set = Object("counts");
  ProbeSet large;
  Probe fence;
  fence.point = Point::kFence;
  fence.text = std::string(size_t{1} << 22, '\n');
  large.probes.push_back(fence);
  std::string fences;
  for (int i = 0; i < 20; ++i) fences += "membar.gl;\n";
  return {OfText(6, Module(kHead, ".reg .b32 %longwire_r;\n"), set),
          OfText(2, Module("\n.version 6.1\n.target sm_60\n.address_size 64\n", ""), set),
          OfText(3, Module(".version 8.0\n.target sm_90\n", ""), set),
          OfText(22, Module(kHead, fences), large)};
}

// A fat binary with one entry.
std::string Fat(uint16_t kind, uint32_t architecture, uint64_t flags, const std::string& code) {
  std::string fat(wire::kFatContainerHeader + 64, '\0');
  const auto put = [&](size_t at, auto value) {
    std::memcpy(fat.data() + at, &value, sizeof(value));
  };
  put(0, wire::kFatContainerMagic);
  put(6, static_cast<uint16_t>(wire::kFatContainerHeader));
  put(8, uint64_t{64} + code.size());
  put(16, kind);
  put(16 + 4, uint32_t{64});
  put(16 + 8, uint64_t{code.size()});
  put(16 + 16, static_cast<uint32_t>(code.size()));
  put(16 + 28, architecture);
  put(16 + 40, flags);
  put(16 + 56, uint64_t{100});
  return fat + code;
}

std::vector<std::string> OfImages() {
  constexpr uint64_t kPacked = 0x8000;
  std::vector<std::string> sentences;
  for (const std::string& image :
       {std::string("\x7f") + "ELF and more", Fat(wire::FatEntry::kCubin, 90, 0, "code"),
        Fat(wire::FatEntry::kPtx, 120, 0, "text"),
        Fat(wire::FatEntry::kPtx, 90, kPacked, "text")}) {
    std::string ptx;
    EXPECT_FALSE(PtxOf(image, 90, &ptx, &sentences.emplace_back()));
  }
  return sentences;
}

TEST(EveryRefusalTest, IsProvokedByAnInput) {
  std::vector<std::string> sentences = OfTexts();
  const auto add = [&](const std::vector<std::string>& more) {
    sentences.insert(sentences.end(), more.begin(), more.end());
  };
  add(OfImages());
  for (const auto& code : kCodes) sentences.push_back(OfCode(code));
  for (const char* name :
       {"refused_either_map", "refused_helper", "refused_map", "refused_point"}) {
    EXPECT_FALSE(
        TryLoad(fs::path(PROBE_OBJECTS) / (std::string(name) + ".o"), &sentences.emplace_back()));
  }
  sentences.push_back(
      OfChanged("refused_either_map", std::string("other", 6), std::string("o$her", 6)));
  sentences.push_back(OfChanged("twice", std::string("secnd", 6), std::string("first", 6)));
  sentences.push_back(OfChanged("twice", "probe/kernel_exi2", "probe/kernel_exit"));
  // What library.cc says is of files and of modules (probes_test.py), Triton's cache has its test.
  const auto refusals = policy::testing::RefusalsIn(fs::path(PROBE_SOURCES) / ".." / "..",
                                                    {"library.cc", "triton.cc", "totals.cc"});
  EXPECT_GT(refusals.size(), 18u);
  const std::vector<std::string> missing =
      policy::testing::WithoutInput(refusals, sentences,
                                    {// The parser refuses such a text before, with the line.
                                     "the function has no end", "the statement has no end",
                                     "the access has no address in brackets"});
  EXPECT_EQ(std::vector<std::string>{}, missing);
}

}  // namespace
}  // namespace longwire::probe::testing
