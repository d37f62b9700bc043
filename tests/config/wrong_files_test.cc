// Every file in testdata/ has mistakes; the file of the same name with .txt has what is said about
// them, line by line: file:line:column: sentence.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "tests/config/reading.h"

namespace longwire::config {
namespace {

using std::filesystem::path;

std::vector<path> Files() {
  std::vector<path> files;
  for (const auto& entry : std::filesystem::directory_iterator(WRONG_FILES)) {
    if (entry.path().extension() == ".yaml") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// As somebody sees it who reads the file from its own folder.
std::string ErrorsOf(const path& file) {
  Problems problems;
  Draft draft;
  ReadText(file.filename().string(), FileText(file), &draft, &problems);
  FillDefaults("/run/test", &draft.config);
  Check(draft, &problems);
  return problems.Text();
}

TEST(WrongFilesTest, EachIsRefusedWithPlaceAndSentence) {
  std::vector<path> files = Files();
  EXPECT_GE(files.size(), 40u);
  for (const path& file : files) {
    std::string expected = FileText(path(file).replace_extension(".txt"));
    EXPECT_TRUE(expected.starts_with(file.filename().string() + ":")) << "nothing expected";
    EXPECT_EQ(ErrorsOf(file), expected) << FileText(file);
  }
}

}  // namespace
}  // namespace longwire::config
