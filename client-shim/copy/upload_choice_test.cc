#include "client-shim/copy/upload_choice.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "wire/limits.h"

namespace longwire::shim {

void PrintTo(UploadWay way, std::ostream* out) {
  constexpr const char* kNames[] = {"shared", "pulled", "speculative", "inline",
                                    "packed", "in log", "by lanes"};
  *out << kNames[static_cast<int>(way)];
}

namespace {

constexpr uint64_t kSmall = wire::kInlineCopyBytes, kLarge = wire::kInlineCopyBytes + 1;

using Way = UploadWay;
using Return = UploadReturn;

// The facts that are true of a copy, as words.
UploadFacts Facts(uint64_t bytes, const std::string& words) {
  UploadFacts facts;
  facts.bytes = bytes;
  facts.fits_window = false;
  const auto has = [&](const char* word) { return words.find(word) != std::string::npos; };
  facts.contiguous = !has("rows");
  facts.captured = has("captured");
  facts.waits = has("waits");
  facts.reads_now = has("now");
  facts.pinned = has("pinned");
  facts.write_pending = has("written");
  facts.reached_later = has("later");
  facts.shared = has("shared");
  facts.fits_window = has("fits");
  facts.fits_lanes = has("lanes");
  facts.may_speculate = has("speculate");
  return facts;
}

struct Row {
  uint64_t bytes;
  const char* facts;
  Way way;
};

TEST(UploadChoice, Table) {
  const std::vector<Row> rows = {
      // Pageable memory: its bytes are sent by the call.
      {1, "", Way::kInline},
      {kSmall, "", Way::kInline},
      {kSmall, "rows", Way::kPacked},
      {kLarge, "", Way::kInLog},
      {kLarge, "rows", Way::kInLog},
      {kLarge, "lanes", Way::kByLanes},
      {kSmall, "waits", Way::kInline},
      {kLarge, "waits", Way::kInLog},
      {kLarge, "waits lanes", Way::kByLanes},
      {kSmall, "lanes", Way::kInline},
      // So is pinned memory that cannot change before the copy reads it, where the bytes fit.
      {kSmall, "pinned", Way::kInline},
      {kLarge, "pinned fits", Way::kInLog},
      {kLarge, "pinned fits lanes", Way::kByLanes},
      {kLarge, "pinned", Way::kPulled},
      {kLarge, "pinned speculate", Way::kSpeculative},
      {kLarge, "pinned waits", Way::kInLog},
      // Pinned memory that may still change.
      {kSmall, "pinned later", Way::kPulled},
      {kSmall, "pinned later speculate", Way::kSpeculative},
      {kLarge, "pinned later fits speculate", Way::kSpeculative},
      {kSmall, "pinned later waits", Way::kPulled},
      {kSmall, "pinned written", Way::kPulled},
      {kSmall, "pinned written speculate", Way::kPulled},
      {kLarge, "pinned written waits fits", Way::kPulled},
      // That is read now all the same.
      {kSmall, "pinned later now", Way::kInline},
      {kLarge, "pinned written now", Way::kInLog},
      {kLarge, "pinned now", Way::kInLog},
      // A capture reads the memory with each launch of its graph.
      {1, "captured", Way::kPulled},
      {kLarge, "captured fits lanes", Way::kPulled},
      {kSmall, "captured now waits", Way::kPulled},
      {kSmall, "captured pinned later speculate", Way::kPulled},
      {kSmall, "captured pinned shared", Way::kPulled},
      // The shared segment.
      {kLarge, "pinned shared fits", Way::kShared},
      {kLarge, "pinned shared later", Way::kShared},
      {kLarge, "pinned shared written", Way::kShared},
      {kSmall, "pinned shared", Way::kShared},
      {kSmall, "pinned shared waits", Way::kInline},
      {kLarge, "pinned shared waits", Way::kShared},
      {kSmall, "pinned shared waits later", Way::kShared},
      {kLarge, "pinned shared now", Way::kInLog},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(ChooseUpload(Facts(row.bytes, row.facts)), row.way) << row.bytes << " " << row.facts;
  }
}

// All combinations of facts.
void ForAll(const std::function<void(const UploadFacts&)>& body) {
  for (uint64_t bytes : {uint64_t{1}, kSmall, kLarge}) {
    for (unsigned bits = 0; bits < 1u << 11; ++bits) {
      const auto bit = [&](int index) { return (bits >> index & 1) != 0; };
      body({bytes, bit(0), bit(1), bit(2), bit(3), bit(4), bit(5), bit(6), bit(7), bit(8), bit(9),
            bit(10)});
    }
  }
}

// Facts are collected only where the predicates ask for them, so elsewhere they must not count.
TEST(UploadChoice, FactsThatAreNotAskedForDoNotCount) {
  ForAll([](const UploadFacts& facts) {
    const auto same_without = [&](bool UploadFacts::*fact) {
      UploadFacts other = facts;
      other.*fact = !(facts.*fact);
      return ChooseUpload(other) == ChooseUpload(facts);
    };
    if (!ReadsInOrder(facts)) {
      EXPECT_TRUE(same_without(&UploadFacts::write_pending));
    }
    if (!ReadsInOrder(facts)) {
      EXPECT_TRUE(same_without(&UploadFacts::reached_later));
    }
    if (MustReadNow(facts)) {
      EXPECT_TRUE(same_without(&UploadFacts::shared));
    }
    if (!AsksToSpeculate(facts)) {
      EXPECT_TRUE(same_without(&UploadFacts::may_speculate));
    }
    if (facts.write_pending) {
      EXPECT_TRUE(same_without(&UploadFacts::reached_later));
    }
  });
}

// Whatever else holds: what a wrong choice would break.
TEST(UploadChoice, BytesAreTakenWhenTheyAreFinal) {
  ForAll([](const UploadFacts& facts) {
    const Way way = ChooseUpload(facts);
    const bool sent =
        way == Way::kInline || way == Way::kPacked || way == Way::kInLog || way == Way::kByLanes;
    const bool changes =
        facts.pinned && !facts.reads_now && (facts.write_pending || facts.reached_later);
    if (facts.captured) {
      EXPECT_EQ(way, Way::kPulled);
    } else if (changes) {
      EXPECT_FALSE(sent);
    } else if (facts.reads_now || !facts.pinned) {
      EXPECT_TRUE(sent || (way == Way::kShared && !facts.reads_now));
    }
    if (facts.write_pending && ReadsInOrder(facts)) {
      EXPECT_NE(way, Way::kSpeculative);
    }
    if (way == Way::kInline || way == Way::kPacked) {
      EXPECT_LE(facts.bytes, wire::kInlineCopyBytes);
    }
  });
}

TEST(UploadReturn, Table) {
  struct Case {
    const char* facts;
    Way way;
    bool unobserved;
    Return expected;
  };
  const std::vector<Case> cases = {
      {"", Way::kInline, true, Return::kAtOnce},
      {"", Way::kPulled, false, Return::kAtOnce},
      {"waits", Way::kInline, true, Return::kEarly},
      {"waits", Way::kPacked, true, Return::kEarly},
      {"waits", Way::kInLog, true, Return::kEarly},
      {"waits", Way::kByLanes, true, Return::kEarly},
      {"waits", Way::kInline, false, Return::kWhenFinished},
      {"waits", Way::kByLanes, false, Return::kWhenFinished},
      // Their bytes are not taken yet, whatever anybody can observe.
      {"waits", Way::kPulled, true, Return::kWhenFinished},
      {"waits", Way::kSpeculative, true, Return::kWhenFinished},
      {"waits", Way::kShared, true, Return::kWhenFinished},
      // Nothing captured runs before its graph is launched.
      {"waits captured", Way::kPulled, true, Return::kAtOnce},
  };
  for (const Case& row : cases) {
    EXPECT_EQ(ChooseReturn(Facts(1, row.facts), row.way, row.unobserved), row.expected)
        << row.facts << " " << ::testing::PrintToString(row.way);
  }
}

TEST(UploadReturn, AnEarlyReturnIsAskedForOnlyWhereItCounts) {
  ForAll([](const UploadFacts& facts) {
    const Way way = ChooseUpload(facts);
    bool same = ChooseReturn(facts, way, true) == ChooseReturn(facts, way, false);
    EXPECT_EQ(AsksToReturnEarly(facts, way), !same);
  });
}

TEST(CachedUpload, Table) {
  const CacheFacts cached{.linear = true, .waits = true};
  EXPECT_TRUE(MayBeCached(cached));
  EXPECT_TRUE(MayBeCached({.linear = true}));  // pageable: read now in any case
  EXPECT_TRUE(MayBeCached({.linear = true, .waits = true, .pinned = true}));
  EXPECT_FALSE(MayBeCached({.linear = true, .pinned = true}));  // read later
  for (bool CacheFacts::*against :
       {&CacheFacts::captured, &CacheFacts::mirrored, &CacheFacts::write_pending}) {
    CacheFacts facts = cached;
    facts.*against = true;
    EXPECT_FALSE(MayBeCached(facts));
  }
  EXPECT_FALSE(MayBeCached({.waits = true}));  // rows, or an array
}

}  // namespace
}  // namespace longwire::shim
