// Which changes a running daemon takes over, and what it says about the others.
#include <gtest/gtest.h>

#include "server/config/config.h"
#include "server/config/live_config.h"
#include "tests/config/reading.h"

namespace longwire::config {
namespace {

std::string Refusals(const std::string& running, const std::string& next) {
  Problems problems;
  Draft draft = ReadCompletely(next, &problems);
  EXPECT_EQ(problems.Text(), "");
  CheckReload(Good(running), draft, &problems);
  return problems.Text();
}

TEST(ReloadCheckTest, WhatMayChange) {
  EXPECT_EQ(Refusals("", ""), "");
  EXPECT_EQ(Refusals("",
                     "max_sessions: 3\nresume_grace: 2s\nlog_level: debug\nplacement: pack\n"
                     "scheduler: {turn: 1ms}\ntenants: [{name: a, identities: b}]\n"),
            "");
  EXPECT_EQ(Refusals("listen: 127.0.0.1:7411\nlocal_socket: /run/test/door\n", ""), "");
}

TEST(ReloadCheckTest, WhatNeedsARestart) {
  EXPECT_EQ(Refusals("", "max_sessions: 3\nlisten: 127.0.0.1:7000\n"),
            "c.yaml:2:9: listen: expected '127.0.0.1:7411' as long as longwired runs, found "
            "'127.0.0.1:7000'; this key is read at the start only: restart longwired to change "
            "it\n");
  EXPECT_EQ(Refusals("warm_workers: 4", ""),
            "the defaults: warm_workers: expected '4' as long as longwired runs, found '1'; this "
            "key is read at the start only: restart longwired to change it\n");
  EXPECT_EQ(Refusals("", "software_device:\n  memory: 1GiB\n"),
            "c.yaml:2:11: software_device.memory: expected nothing as long as longwired runs, "
            "found '1GiB'; this key is read at the start only: restart longwired to change it\n");
  EXPECT_EQ(
      Refusals("devices: [{device: 1}]", "devices:\n  - device: 2\n"),
      "c.yaml:2:3: devices: expected 'device: 1' as long as longwired runs, found 'device: 2'; "
      "this key is read at the start only: restart longwired to change it\n");
}

TEST(ReloadCheckTest, ChangesAreNamed) {
  EXPECT_EQ(Changes(Good(""), Good("")), std::vector<std::string>{});
  EXPECT_EQ(Changes(Good("max_sessions: 3"),
                    Good("scheduler: {turn: 1ms}\ntenants: [{name: a, weight: 2}]")),
            (std::vector<std::string>{"scheduler.turn: '10ms' becomes '1ms'", "tenants: changed",
                                      "max_sessions: '3' becomes '256'"}));
}

TEST(LiveConfigTest, ASnapshotStaysAsItWas) {
  LiveConfig live(Good("max_sessions: 3"));
  LiveConfig::Snapshot before = live.Get();
  std::vector<uint32_t> told;
  live.Subscribe([&](const Config& config) { told.push_back(config.max_sessions()); });
  live.Subscribe(
      [&](const Config& /*config*/) { told.push_back(live.Get()->max_sessions() + 100); });
  live.Replace(Good("max_sessions: 4"));
  EXPECT_EQ(before->max_sessions(), 3u);
  EXPECT_EQ(live.Get()->max_sessions(), 4u);
  EXPECT_EQ(told, (std::vector<uint32_t>{4, 104}));
}

}  // namespace
}  // namespace longwire::config
