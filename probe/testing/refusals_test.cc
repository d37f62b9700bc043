// Each testing/objects/refused_*.c begins with what its refusal has to say: the place, then what
// is wrong.
#include <algorithm>

#include "probe/testing/support.h"

namespace longwire::probe::testing {
namespace {

std::vector<std::string> RefusedObjects() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(PROBE_SOURCES)) {
    const std::string name = entry.path().stem();
    if (name.starts_with("refused_")) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

class RefusalTest : public ::testing::TestWithParam<std::string> {};

TEST_P(RefusalTest, SaysWhereAndWhat) {
  const std::string source = ReadFile(std::filesystem::path(PROBE_SOURCES) / (GetParam() + ".c"));
  const std::string begin = "/* refused: ";
  ASSERT_TRUE(source.starts_with(begin)) << source;
  const size_t bar = source.find(" | "), end = source.find(" */");
  ASSERT_LT(bar, end);
  const std::string place = source.substr(begin.size(), bar - begin.size());
  const std::string what = source.substr(bar + 3, end - bar - 3);
  std::string sentence;
  EXPECT_FALSE(TryLoad(std::filesystem::path(PROBE_OBJECTS) / (GetParam() + ".o"), &sentence));
  EXPECT_NE(std::string::npos, sentence.find(place)) << sentence;
  EXPECT_NE(std::string::npos, sentence.find(what)) << sentence;
}

INSTANTIATE_TEST_SUITE_P(Objects, RefusalTest, ::testing::ValuesIn(RefusedObjects()),
                         [](const auto& info) { return info.param; });

TEST(ToolsTest, AreVerified) {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(PROBE_TOOLS)) {
    EXPECT_FALSE(Load(entry.path()).probes.empty()) << entry.path();
    ++count;
  }
  EXPECT_EQ(count, 7u);  // two of them for traced programs
}

TEST(ObjectTest, AnyPrefixOfAnObjectIsRefusedWithASentence) {
  const std::string object = ReadFile(std::filesystem::path(PROBE_TOOLS) / "memhist.o");
  ASSERT_FALSE(object.empty());
  for (size_t size = 0; size < object.size(); size += 7) {
    std::string sentence;
    EXPECT_FALSE(LoadProbes(std::as_bytes(std::span(object).first(size)), nullptr, &sentence));
    EXPECT_FALSE(sentence.empty()) << size;
  }
}

}  // namespace
}  // namespace longwire::probe::testing
