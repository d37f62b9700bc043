// Which version two sides choose, whatever they say of themselves.
#include "wire/versions.h"

#include <gtest/gtest.h>

#include "wire/open.h"

namespace longwire::wire {
namespace {

TEST(Versions, TheNewestCommonOneOfAllCombinations) {
  constexpr uint32_t kNewest = 7;
  for (uint32_t a = 0; a <= kNewest; ++a) {
    for (uint32_t b = 0; b <= kNewest; ++b) {
      for (uint32_t c = 0; c <= kNewest; ++c) {
        for (uint32_t d = 0; d <= kNewest; ++d) {
          VersionRange one{a, b}, other{c, d};
          uint32_t expected = 0;
          for (uint32_t version = 1; version <= kNewest; ++version) {
            bool ranges = one.IsValid() && other.IsValid();
            if (ranges && one.Has(version) && other.Has(version)) expected = version;
          }
          EXPECT_EQ(NewestCommon(one, other), expected) << a << b << c << d;
          EXPECT_EQ(NewestCommon(other, one), expected) << a << b << c << d;
        }
      }
    }
  }
}

TEST(Versions, HostileRangesHaveNothingInCommonWithAnybody) {
  const VersionRange ours = kBuiltVersions;
  for (VersionRange hostile :
       {VersionRange{0, 0}, VersionRange{0, UINT32_MAX}, VersionRange{UINT32_MAX, 0},
        VersionRange{ours.newest, ours.oldest}, VersionRange{UINT32_MAX, UINT32_MAX}}) {
    EXPECT_EQ(NewestCommon(ours, hostile), 0u);
    EXPECT_FALSE(
        RefusalOf({"the client", kUpgradeClient, hostile}, {"this server", kUpgradeServer, ours})
            .empty());
  }
  // A range without an end has what we have.
  EXPECT_EQ(NewestCommon(ours, {1, UINT32_MAX}), ours.newest);
  EXPECT_EQ(NewestCommon({1, UINT32_MAX}, {UINT32_MAX, UINT32_MAX}), UINT32_MAX);
}

TEST(Versions, ARefusalNamesBothRangesAndTheOlderSide) {
  const Speaker client{"the client", kUpgradeClient, {15, 16}};
  const Speaker server{"this server", kUpgradeServer, {13, 14}};
  EXPECT_EQ(RefusalOf(client, server),
            "the client speaks protocol 15 to 16, this server protocol 13 to 14: upgrade longwired "
            "on the server");
  EXPECT_EQ(RefusalOf({"the client", kUpgradeClient, {12, 12}}, server),
            "the client speaks protocol 12, this server protocol 13 to 14: upgrade Longwire on the "
            "client");
  EXPECT_EQ(RefusalOf({"the client", kUpgradeClient, {16, 15}}, server),
            "this server speaks protocol 13 to 14, the client protocol 16 to 15, which is no "
            "range: install Longwire on the client anew");
}

TEST(Versions, AnAnswerIsUnderstoodByItsNumberARefusalByTheRange) {
  const VersionRange ours = SpokenVersions();
  const VersionRange newer{ours.newest + 1, ours.newest + 2};
  EXPECT_EQ(ProblemOfAnswer(false, ours.oldest, ours), "");
  EXPECT_EQ(ProblemOfAnswer(true, newer.newest, {ours.newest, newer.newest}), "");
  EXPECT_NE(ProblemOfAnswer(false, newer.newest, newer).find("upgrade Longwire on the client"),
            std::string::npos);
  EXPECT_NE(ProblemOfAnswer(true, 12, {12, 12}).find("upgrade longwired on the server"),
            std::string::npos);
}

std::vector<std::byte> Encoded(const OpenRequest& request) {
  Writer writer;
  request.Encode(writer);
  return {writer.data(), writer.data() + writer.size()};
}

OpenRequest Decoded(std::span<const std::byte> bytes) {
  OpenRequest request;
  Reader reader(bytes);
  EXPECT_EQ(request.Decode(reader), WireResult::kOk);
  return request;
}

TEST(Versions, ARequestIsNarrowedWhereverItsRangeStands) {
  OpenRequest request;
  request.program = "program";
  for (VersionRange sent : {kWithoutRange, kBuiltVersions}) {
    request.versions = sent;
    std::vector<std::byte> bytes = Encoded(request);
    EXPECT_EQ(Decoded(bytes).versions, sent);
    EXPECT_EQ(Narrowed(bytes, sent), bytes);
    request.versions = kWithoutRange;
    EXPECT_EQ(Narrowed(bytes, kWithoutRange), Encoded(request));
    request.versions = {kBuiltVersions.newest, kBuiltVersions.newest};
    std::vector<std::byte> narrowed = Narrowed(bytes, request.versions);
    EXPECT_EQ(narrowed, Encoded(request));
    EXPECT_EQ(Decoded(narrowed).versions, request.versions);
    EXPECT_EQ(Decoded(narrowed).program, "program");
  }
  std::vector<std::byte> small(7);
  EXPECT_EQ(Narrowed(small, kBuiltVersions), small);
}

TEST(Versions, AHostileRangeOfARequestIsReadAndNothingElse) {
  OpenRequest request;
  for (VersionRange hostile :
       {VersionRange{14, 13}, VersionRange{0, 14}, VersionRange{UINT32_MAX, 0}}) {
    request.versions = hostile;
    request.program = "program";
    OpenRequest decoded = Decoded(Encoded(request));
    EXPECT_EQ(decoded.versions, hostile);
    EXPECT_EQ(decoded.program, "");
  }
  // The mark alone, where no range can be.
  std::vector<std::byte> bytes = Encoded(request);
  EXPECT_TRUE(HasRange(bytes));
  EXPECT_FALSE(HasRange(std::span(bytes).last(4)));
  EXPECT_FALSE(HasRange({}));
}

}  // namespace
}  // namespace longwire::wire
