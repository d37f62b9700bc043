#include <gtest/gtest.h>

#include <string>

#include "longwire/call_ids.h"
#include "server/rules/calls.h"
#include "server/rules/decide.h"
#include "server/rules/pattern.h"
#include "server/rules/rules_of.h"
#include "server/rules/sizes.h"
#include "wire/socket.h"

namespace longwire::rules {
namespace {

TEST(Patterns, StarsAndQuestionMarks) {
  EXPECT_TRUE(Matches("*", ""));
  EXPECT_TRUE(Matches("a*c", "abbc"));
  EXPECT_TRUE(Matches("a*b*c", "axbxbxc"));
  EXPECT_TRUE(Matches("?b", "ab"));
  EXPECT_FALSE(Matches("?b", "b"));
  EXPECT_FALSE(Matches("a*c", "abcd"));
  EXPECT_FALSE(Matches("", "a"));
  EXPECT_TRUE(Matches("", ""));
  EXPECT_TRUE(IsExact("x") && !IsExact("x*") && !IsExact("?") && !IsExact(""));
}

// A pattern of many stars does not take time without end.
TEST(Patterns, ManyStarsEnd) {
  std::string pattern, text(512, 'a');
  for (int i = 0; i < 255; ++i) pattern += "*a";
  EXPECT_FALSE(Matches(pattern + "b", text));
}

TEST(Patterns, OfProgramsAlsoTheLastPart) {
  EXPECT_TRUE(MatchesProgram("train*", "/usr/bin/train.py"));
  EXPECT_TRUE(MatchesProgram("/usr/*", "/usr/bin/train.py"));
  EXPECT_FALSE(MatchesProgram("bin*", "/usr/bin/train.py"));
}

TEST(Sizes, OneToThreePositiveNumbers) {
  uint32_t sizes[3] = {};
  EXPECT_TRUE(ParseSizes("128", sizes) && sizes[0] == 128 && sizes[1] == 1 && sizes[2] == 1);
  EXPECT_TRUE(ParseSizes("8x4x2", sizes) && sizes[0] == 8 && sizes[1] == 4 && sizes[2] == 2);
  for (const char* wrong : {"", "0", "x", "1x", "1x0", "1x1x1x1", "-1", "1 x1", "4294967296"}) {
    EXPECT_FALSE(ParseSizes(wrong, sizes)) << wrong;
  }
}

// A name that no call has would deny nothing.
TEST(Calls, EachNameOfTheWireIsACall) {
  for (const DeniableCall& call : DeniableCalls()) {
    bool found = false;
    for (uint16_t id = 1; id < std::size(facts::kOf); ++id) {
      found |= call.wire_name == CallName(static_cast<CallId>(id));
    }
    EXPECT_TRUE(found) << call.wire_name;
  }
}

Rule OfKernel(const std::string& kernel, uint32_t priority) {
  Rule rule;
  rule.name = kernel;
  rule.kernel = kernel;
  rule.launch.priority = priority;
  return rule;
}

TEST(Decisions, TheLaterRuleCountsAndOthersStay) {
  std::vector<Rule> rules = {OfKernel("*", 1), OfKernel("a*", 2), OfKernel("b", 3)};
  rules[0].launch.shared_memory = 40;
  LaunchDecision decision = DecideLaunch(rules, "", "ab");
  EXPECT_EQ(decision.change.priority, 2u);
  EXPECT_EQ(decision.change.shared_memory, 40u);
  EXPECT_TRUE(decision.changes_attributes());
  EXPECT_FALSE(decision.empty());
  EXPECT_TRUE(DecideLaunch({}, "", "ab").empty());
}

TEST(Decisions, RulesOfAKernelSayNothingAboutOtherCalls) {
  std::vector<Rule> rules = {OfKernel("a*", 1)};
  rules[0].validate = true;
  rules[0].retry = {3, 1};
  rules[0].deny = {"cuLaunchKernel"};
  EXPECT_FALSE(ValidatesCopies(rules));
  EXPECT_EQ(RetryOfAllocations(rules).count, 0u);
  EXPECT_EQ(DeniedBy(rules, "cuLaunchKernel", ""), "");
  EXPECT_EQ(DecideLaunch(rules, "", "ab").denied_by, "a*");
}

TEST(Decisions, ARuleOfAModuleDeniesThatModuleOnly) {
  std::vector<Rule> rules(1);
  rules[0].name = "x";
  rules[0].module = "3f*";
  rules[0].deny = {"cuModuleLoad"};
  EXPECT_EQ(DeniedBy(rules, "cuModuleLoad", "3fa"), "x");
  EXPECT_EQ(DeniedBy(rules, "cuModuleLoad", "4f"), "");
  EXPECT_EQ(DeniedBy(rules, "cuModuleLoad", ""), "");
}

TEST(FromTheConfiguration, GlobalOnesFirstAndOnlyThoseOfTheProgram) {
  config::Config config;
  config.add_rules()->set_program("serve");
  config.add_rules()->set_name("all");
  config::Tenant& tenant = *config.add_tenants();
  tenant.set_name("a");
  tenant.add_rules()->set_validate(true);
  RuleList rules = RulesOf(config, "a", "/bin/train");
  ASSERT_EQ(rules.rules.size(), 2u);
  EXPECT_EQ(rules.rules[0].name, "'all'");
  EXPECT_TRUE(rules.rules[1].validate);
  EXPECT_EQ(rules.rules[1].name, "1 of the rules of tenant 'a'");
  EXPECT_EQ(RulesOf(config, "b", "/bin/serve").rules.size(), 2u);
}

TEST(FromTheConfiguration, TheMostAndLargestRulesFitIntoOnePacket) {
  config::Config config;
  for (size_t i = 0; i < kMaxRules; ++i) {
    config::Rule& rule = *config.add_rules();
    rule.set_name(std::string(64, 'n'));
    rule.set_module(std::string(64, 'm'));
    rule.set_kernel(std::string(512, 'k'));
    for (int times = 0; times < 2; ++times) {
      for (const DeniableCall& call : DeniableCalls()) rule.add_deny(std::string(call.name));
    }
  }
  RuleList rules = RulesOf(config, "", "x");
  std::vector<std::byte> packet = message::Pack(rules);
  EXPECT_LE(packet.size(), wire::kMaxMessageBytes);
  RuleList again;
  ASSERT_EQ(message::Unpack(packet, &again), wire::WireResult::kOk);
  EXPECT_EQ(again.rules.size(), kMaxRules);
}

}  // namespace
}  // namespace longwire::rules
