#include "server/daemon/policies/policies.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace longwire::daemon {
namespace {

std::string ObjectFile(const std::string& name) {
  return (std::filesystem::path(POLICY_OBJECTS) / (name + ".o")).string();
}

class PoliciesTest : public ::testing::Test {
 protected:
  PoliciesTest() { EXPECT_NE(nullptr, policy::LoadEngine(&sentence_, POLICY_ENGINE)) << sentence_; }

  bool Load(const std::string& name, const std::string& object) {
    std::ifstream file(ObjectFile(object), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    return policies_.Load(name, std::as_bytes(std::span(text)), &sentence_);
  }
  static config::Config With(const std::string& name, const std::string& object) {
    config::Config config;
    config::PolicyFile* policy = config.add_policies();
    policy->set_name(name);
    policy->set_file(ObjectFile(object));
    return config;
  }
  std::string Names() {
    transport::InspectReply reply;
    policies_.Describe(false, {}, &reply);
    std::string names;
    for (const auto& one : reply.policies()) names += one.name() + " ";
    return names;
  }

  std::string sentence_;
  Scheduling scheduling_{SchedulingOptions{}};
  PlacementTable placements_;
  MemoryPolicy memory_{[](const auto&, auto) { return true; }};
  LaunchPolicy launches_{[](const auto&) {}};
  Policies policies_{{scheduling_, placements_, memory_, launches_}};
};

TEST_F(PoliciesTest, AReloadLeavesWhatWasLoadedByCommandMeanwhile) {
  ASSERT_TRUE(policies_.Prepare(With("configured", "favourite"), &sentence_)) << sentence_;
  ASSERT_TRUE(Load("meanwhile", "roomiest")) << sentence_;
  policies_.Apply();
  EXPECT_EQ("configured meanwhile ", Names());
  ASSERT_TRUE(policies_.Prepare({}, &sentence_)) << sentence_;
  ASSERT_TRUE(policies_.Unload("meanwhile", &sentence_)) << sentence_;
  policies_.Apply();
  EXPECT_EQ("", Names());
}

TEST_F(PoliciesTest, WhatAReloadThatIsUnderWayHasIsNotDecidedByAnother) {
  ASSERT_TRUE(policies_.Prepare(With("configured", "favourite"), &sentence_)) << sentence_;
  EXPECT_FALSE(Load("meanwhile", "weighted_fair"));
  EXPECT_NE(std::string::npos, sentence_.find("'configured' and 'meanwhile' both")) << sentence_;
  policies_.Apply();
  EXPECT_EQ("configured ", Names());
}

TEST_F(PoliciesTest, WhatAPolicySaysOfATenantIsInForceUntilItOrTheSchedulerEnds) {
  using scheduler::PriorityClass;
  const auto terms = [this] { return scheduling_.Terms().at("urgent"); };
  const scheduler::TenantTerms configured{PriorityClass::kBestEffort, 3};
  const scheduler::TenantTerms advised{PriorityClass::kLatencyCritical, 3};
  scheduler::SessionInfo info;
  info.id = 1;
  info.tenant = "urgent";
  info.weight = 3;
  info.devices = {0};
  const auto page = scheduling_.Open(info);
  ASSERT_TRUE(Load("terms", "terms")) << sentence_;
  EXPECT_EQ(terms(), configured);
  ASSERT_TRUE(policies_.SetValue("terms", "terms", "tenant:urgent", 1, &sentence_)) << sentence_;
  scheduling_.ChangeTenant("urgent", PriorityClass::kBestEffort, 3);
  EXPECT_EQ(terms(), advised);
  SchedulingOptions off;
  off.enabled = false;
  scheduling_.Change(off);
  EXPECT_EQ(terms(), configured);
  scheduling_.Change({});
  EXPECT_EQ(terms(), advised);
  ASSERT_TRUE(policies_.Unload("terms", &sentence_)) << sentence_;
  EXPECT_EQ(terms(), configured);
}

TEST_F(PoliciesTest, AReloadThatIsRefusedIsInNobodysWay) {
  ASSERT_TRUE(policies_.Prepare(With("configured", "favourite"), &sentence_)) << sentence_;
  policies_.Abandon();
  EXPECT_TRUE(Load("later", "weighted_fair")) << sentence_;
  policies_.Apply();
  EXPECT_EQ("later ", Names());
}

TEST_F(PoliciesTest, TheConfigurationReplacesWhatACommandLoadedUnderTheSameName) {
  ASSERT_TRUE(Load("one", "weighted_fair")) << sentence_;
  ASSERT_TRUE(policies_.Prepare(With("one", "roomiest"), &sentence_)) << sentence_;
  policies_.Apply();
  transport::InspectReply reply;
  policies_.Describe(false, {}, &reply);
  ASSERT_EQ(1, reply.policies_size());
  EXPECT_TRUE(reply.policies(0).configured());
  EXPECT_EQ("place", reply.policies(0).hooks(0));
}

}  // namespace
}  // namespace longwire::daemon
