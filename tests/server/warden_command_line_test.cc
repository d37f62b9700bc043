// What longwire-warden takes on its command line, and what it says of all else.
#include <gtest/gtest.h>

#include <cstdlib>
#include <utility>

#include "server/warden/command_line.h"

namespace longwire::warden {
namespace {

std::optional<Options> Parse(std::vector<std::string> words, Refusal* refusal) {
  words.insert(words.begin(), "longwire-warden");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  return ParseCommandLine(static_cast<int>(words.size()), arguments.data(), refusal);
}

// What is understood.
Options Understood(std::vector<std::string> words) {
  Refusal refusal;
  auto options = Parse(std::move(words), &refusal);
  EXPECT_TRUE(options.has_value()) << refusal.text;
  return options.value_or(Options());
}

TEST(CommandLine, EveryOption) {
  Options options = Understood({"--socket", "/s", "--driver", "software", "--devices", "3,0",
                                "--warm-workers", "2", "--warm-workers-of", "0=0,3=64",
                                "--software-devices", "4", "--compile-cache", "/c", "--on-demand"});
  EXPECT_EQ(options.socket, "/s");
  EXPECT_EQ(options.driver, "software");
  EXPECT_EQ(options.devices, (std::vector<int32_t>{3, 0}));
  EXPECT_EQ(options.warm_workers, 2);
  EXPECT_EQ(options.warm_workers_of, (std::map<int32_t, int>{{0, 0}, {3, 64}}));
  EXPECT_EQ(options.compile_cache, "/c");
  EXPECT_TRUE(options.on_demand);
  EXPECT_STREQ(getenv("LONGWIRE_SOFTWARE_DEVICES"), "4");
  unsetenv("LONGWIRE_SOFTWARE_DEVICES");
}

TEST(CommandLine, TheSocketAloneIsEnough) {
  Options options = Understood({"--socket=/s"});
  EXPECT_EQ(options.driver, "auto");
  EXPECT_EQ(options.warm_workers, 1);
  EXPECT_TRUE(options.devices.empty());
  EXPECT_FALSE(options.on_demand);
  Refusal refusal;
  EXPECT_FALSE(Parse({}, &refusal));
  EXPECT_EQ(refusal.status, 2);
  EXPECT_EQ(refusal.text, "longwire-warden: --socket is needed; see longwire-warden --help\n");
}

TEST(CommandLine, HelpAndVersionAreWhatWasAskedFor) {
  Refusal refusal;
  EXPECT_FALSE(Parse({"--help"}, &refusal));
  EXPECT_EQ(refusal.status, 0);
  for (const char* option :
       {"--socket", "--driver", "--devices", "--warm-workers", "--warm-workers-of",
        "--software-devices", "--compile-cache", "--on-demand", "--help", "--version"}) {
    EXPECT_NE(refusal.text.find(option), std::string::npos) << option;
  }
  refusal = {};
  EXPECT_FALSE(Parse({"--socket", "/s", "--version"}, &refusal));
  EXPECT_EQ(refusal.status, 0);
  EXPECT_TRUE(refusal.text.starts_with("longwire-warden ")) << refusal.text;
}

TEST(CommandLine, WhatIsNoNumberIsRefusedByItsOption) {
  const std::pair<const char*, std::vector<const char*>> kWrong[] = {
      {"--warm-workers", {"abc", "", "-1", "65", "1x"}},
      {"--devices", {"x", "", "0,", "0,x", "64", "-1"}},
      {"--warm-workers-of", {"", "0", "0=", "=1", "0=x", "x=1", "0=1,1", "0=65", "0=1=2"}},
      {"--software-devices", {"0", "65", "two"}},
  };
  for (const auto& [option, values] : kWrong) {
    for (const char* value : values) {
      Refusal refusal;
      EXPECT_FALSE(Parse({"--socket", "/s", option, value}, &refusal)) << option << " " << value;
      EXPECT_EQ(refusal.status, 2);
      EXPECT_TRUE(refusal.text.starts_with(std::string("longwire-warden: ") + option + " expects "))
          << refusal.text;
      EXPECT_NE(refusal.text.find(std::string("found '") + value + "'; see longwire-warden --help"),
                std::string::npos)
          << refusal.text;
    }
  }
}

TEST(CommandLine, WhatIsNoOptionIsRefused) {
  for (const char* word : {"--frob", "--socket", "frob", "-x"}) {
    Refusal refusal;
    EXPECT_FALSE(Parse({"--socket", "/s", word}, &refusal)) << word;
    EXPECT_EQ(refusal.status, 2);
    EXPECT_NE(refusal.text.find("see longwire-warden --help\n"), std::string::npos);
  }
}

}  // namespace
}  // namespace longwire::warden
