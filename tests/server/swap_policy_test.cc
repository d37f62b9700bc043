// Runs the transcripts of the swap policy (server/keeper/testdata): a paragraph that says the
// property, commands, and behind "----" what they answer.
//   add REGION owner=NAME bytes=N   use OWNER   remove REGION
//   victims BYTES [room=N] [movable=REGION,…]   prefetch REGION…
#include "server/keeper/swap_policy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

namespace longwire::keeper {
namespace {

class Transcript {
 public:
  std::string Run(const std::string& line) {
    std::istringstream words(line);
    std::string verb, word;
    words >> verb;
    std::vector<std::string> plain;
    std::map<std::string, std::string> named;
    while (words >> word) {
      size_t equals = word.find('=');
      if (equals == std::string::npos) plain.push_back(word);
      if (equals != std::string::npos) named[word.substr(0, equals)] = word.substr(equals + 1);
    }
    if (verb == "add") {
      Region region{std::stoull(plain.at(0)), Owner(named.at("owner")),
                    std::stoull(named.at("bytes"))};
      regions_[region.id] = region;
      policy_->Added(region);
    } else if (verb == "use") {
      policy_->Accessed(Owner(plain.at(0)));
    } else if (verb == "remove") {
      policy_->Removed(std::stoull(plain.at(0)));
      regions_.erase(std::stoull(plain.at(0)));
    } else if (verb == "victims") {
      uint64_t room = named.contains("room") ? std::stoull(named["room"]) : UINT64_MAX;
      return Text(policy_->Victims(std::stoull(plain.at(0)), room, Among(named["movable"])));
    } else if (verb == "prefetch") {
      std::vector<Region> away;
      for (const std::string& id : plain) away.push_back(regions_.at(std::stoull(id)));
      return Text(policy_->Prefetch(away));
    } else {
      return "nobody knows '" + verb + "'\n";
    }
    return "";
  }

 private:
  static uint64_t Owner(const std::string& name) { return static_cast<uint64_t>(name.at(0)); }

  std::vector<Region> Among(const std::string& list) {
    std::vector<Region> among;
    std::string ids = "," + list + ",";
    for (const auto& [id, region] : regions_) {
      bool named = ids.find("," + std::to_string(id) + ",") != std::string::npos;
      if (list.empty() || named) among.push_back(region);
    }
    return among;
  }

  static std::string Text(const std::vector<Region>& regions) {
    std::string text;
    for (const Region& region : regions) {
      text += std::to_string(region.id) + " of " + static_cast<char>(region.owner) + "\n";
    }
    return text.empty() ? "nobody\n" : text;
  }

  std::unique_ptr<SwapPolicy> policy_ = LeastRecentlyUsed();
  std::map<uint64_t, Region> regions_;
};

class SwapPolicyTest : public testing::TestWithParam<std::string> {};

TEST_P(SwapPolicyTest, AnswersWhatItSays) {
  std::ifstream file(std::string(TESTDATA) + "/" + GetParam() + ".txt");
  ASSERT_TRUE(file);
  Transcript transcript;
  std::string printed, line;
  size_t blocks = 0;
  for (size_t number = 1; std::getline(file, line); ++number) {
    if (line == "----") {
      std::string expected;
      while (std::getline(file, line) && !line.empty()) expected += line + "\n";
      EXPECT_EQ(printed, expected) << "behind line " << number;
      printed.clear();
      ++blocks;
    } else if (!line.empty() && line[0] != '#') {
      printed += transcript.Run(line);
    }
  }
  EXPECT_GT(blocks, 0u);
}

std::vector<std::string> Names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(TESTDATA)) {
    names.push_back(entry.path().stem());
  }
  std::ranges::sort(names);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Transcripts, SwapPolicyTest, testing::ValuesIn(Names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace longwire::keeper
