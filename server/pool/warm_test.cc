// What a host says of the code that it has, and what the placer makes of it.
#include "server/pool/warm.h"

#include <gtest/gtest.h>

#include "server/pool/keys.h"

namespace longwire::pool {
namespace {

class WarmTest : public testing::Test {
 protected:
  void Say(const std::string& host, const Warm& warm) {
    etcd::pb::KeyValue& kv = keys_[Key(kWarm, host)];
    kv.set_value(Encode(warm));
    kv.set_mod_revision(++revision_);
    hosts_.Look(keys_);
  }

  size_t Cached(const std::string& host, const std::string& program) {
    scheduler::pool::HostState state;
    scheduler::pool::Wish wish;
    state.name = host;
    wish.tenant = "t";
    wish.program = program;
    hosts_.Fill(&state);
    hosts_.Fill(&wish);
    return scheduler::pool::CachedFor(wish, state);
  }

  UsedImages used_;
  etcd::Mirror::Keys keys_;
  int64_t revision_ = 0;
  WarmHosts hosts_;
};

TEST_F(WarmTest, WhatAProgramUsedAtOneHostIsLookedForAtOthers) {
  const std::string one = ImageName("t", "aa"), two = ImageName("t", "bb");
  used_.Used(ProgramName("t", "train"), one);
  used_.Used(ProgramName("t", "train"), two);
  Say("a", used_.Record({one, two}));
  Say("b", UsedImages().Record({two}));
  EXPECT_EQ(Cached("a", "train"), 2u);
  EXPECT_EQ(Cached("b", "train"), 1u) << "by its content, whoever used it there";
  EXPECT_EQ(Cached("c", "train"), 0u);
  EXPECT_EQ(Cached("a", "other"), 0u);
  EXPECT_NE(ImageName("u", "aa"), one) << "another tenant has to send it itself";
}

TEST_F(WarmTest, TheProgramIsRememberedWhenItsHostHasGone) {
  const std::string image = ImageName("t", "aa");
  used_.Used(ProgramName("t", "train"), image);
  Say("a", used_.Record({image}));
  Say("b", UsedImages().Record({image}));
  keys_.erase(Key(kWarm, "a"));
  hosts_.Look(keys_);
  EXPECT_EQ(Cached("a", "train"), 0u);
  EXPECT_EQ(Cached("b", "train"), 1u);
  Say("b", UsedImages().Record({}));
  EXPECT_EQ(Cached("b", "train"), 0u) << "it has made room for others";
}

TEST_F(WarmTest, TheRecordHasTheNewestAndIsTheSameInAnyOrder) {
  std::vector<std::string> cached;
  for (int i = 0; i < 1000; ++i) {
    const std::string image = "i" + std::to_string(i);
    used_.Used("p" + std::to_string(i / 10), image);
    for (int j = 0; j < 3; ++j) used_.Used("last", image);
    cached.push_back(image);
  }
  const Warm warm = used_.Record(cached);
  EXPECT_EQ(warm.images_size(), static_cast<int>(UsedImages::kCached));
  EXPECT_EQ(warm.programs_size(), static_cast<int>(UsedImages::kPrograms));
  bool found = false;
  for (const Warm::Program& program : warm.programs()) {
    EXPECT_LE(program.images_size(), static_cast<int>(UsedImages::kImages));
    EXPECT_NE(program.name(), "p0");
    found = found || program.name() == "last";
  }
  EXPECT_TRUE(found);
  used_.Used("last", "i998");
  used_.Used("last", "i999");
  EXPECT_EQ(Encode(used_.Record(cached)), Encode(warm));
}

}  // namespace
}  // namespace longwire::pool
