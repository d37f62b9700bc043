// Each testing/objects/refused_*.c begins with what its refusal has to say: the place, then what
// is wrong.
#include <gtest/gtest.h>

#include <algorithm>

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
