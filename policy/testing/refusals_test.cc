// Each testing/objects/refused_*.c begins with what its refusal has to say: the place, then what
// is wrong.
#include <gtest/gtest.h>

#include <algorithm>

#include "policy/flow.h"
#include "policy/testing/load.h"

namespace longwire::policy::testing {
namespace {

std::vector<std::string> RefusedObjects() {
  std::vector<std::string> names;
  const auto folder = std::filesystem::path(POLICY_SOURCES) / "testing" / "objects";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().stem();
    if (name.starts_with("refused_")) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

uint64_t AnyHelper(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t) { return 0; }

class RefusalTest : public ::testing::TestWithParam<std::string> {};

TEST_P(RefusalTest, SaysWhereAndWhat) {
  std::ifstream source(std::filesystem::path(POLICY_SOURCES) / "testing" / "objects" /
                       (GetParam() + ".c"));
  std::string first;
  std::getline(source, first);
  const std::string begin = "/* refused: ";
  ASSERT_TRUE(first.starts_with(begin)) << first;
  const size_t bar = first.find(" |");
  ASSERT_NE(std::string::npos, bar);
  const std::string place = first.substr(begin.size(), bar - begin.size());
  std::string what = first.substr(bar + 2, first.rfind(" */") - bar - 2);
  if (!what.empty()) what.erase(0, 1);

  std::string sentence;
  EXPECT_EQ(nullptr, TryLoad(GetParam(), &sentence));
  EXPECT_NE(std::string::npos, sentence.find(place)) << sentence;
  EXPECT_NE(std::string::npos, sentence.find(what)) << sentence;
}

INSTANTIATE_TEST_SUITE_P(Objects, RefusalTest, ::testing::ValuesIn(RefusedObjects()),
                         [](const auto& info) { return info.param; });

// Each byte of each instruction of an example, changed: what the verifier then refuses, it refuses
// with a place.
TEST(EngineTest, EveryRefusalOfTheVerifierSaysWhere) {
  std::string sentence;
  const auto object = ReadObject(ObjectNamed("favourite"), &sentence);
  ASSERT_TRUE(object) << sentence;
  const HelperShape helpers[] = {
      {"lw_map_get", AnyHelper, 2}, {"lw_map_set", AnyHelper, 3}, {"lw_map_add", AnyHelper, 3}};
  int refused = 0, accepted = 0;
  for (const HookCode& code : object->hooks) {
    for (size_t byte = 0; byte < code.instructions.size() * sizeof(Instruction); ++byte) {
      for (const uint8_t change : {0x01, 0x04, 0x08, 0x10, 0x40, 0x80, 0xff}) {
        HookCode changed = code;
        reinterpret_cast<uint8_t*>(changed.instructions.data())[byte] ^= change;
        sentence.clear();
        if (CheckFlow(changed, &sentence) &&
            TheEngine()->Compile(changed, sizeof(lw_turn), helpers, &sentence) != nullptr) {
          ++accepted;
          continue;
        }
        ++refused;
        EXPECT_NE(std::string::npos, sentence.find("(instruction "))
            << "byte " << byte << " ^ " << int{change} << ": " << sentence;
        EXPECT_NE(std::string::npos, sentence.find(" of favourite.c")) << sentence;
      }
    }
  }
  EXPECT_GT(refused, 100);
  EXPECT_GT(accepted, 100);
}

TEST(ObjectTest, AnyPrefixOfAnObjectIsRefusedWithASentence) {
  const auto object = ObjectNamed("favourite");
  ASSERT_FALSE(object.empty());
  for (size_t size = 0; size < object.size(); size += 7) {
    std::string sentence;
    EXPECT_FALSE(ReadObject(std::span(object).first(size), &sentence)) << size;
    EXPECT_FALSE(sentence.empty()) << size;
  }
}

TEST(ObjectTest, AnotherFileIsNoObject) {
  std::string sentence;
  const auto text = ReadFile(std::filesystem::path(POLICY_SOURCES) / "examples" / "favourite.c");
  EXPECT_FALSE(ReadObject(text, &sentence));
  EXPECT_NE(std::string::npos, sentence.find("clang -target bpf")) << sentence;
}

}  // namespace
}  // namespace longwire::policy::testing
