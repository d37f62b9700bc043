// Who has said the same token.
#include "server/daemon/sharing/linked_sessions.h"

#include <gtest/gtest.h>

namespace longwire::daemon {
namespace {

TEST(LinkedSessions, TheSecondToSayATokenIsLinkedWithTheFirst) {
  LinkedSessions links;
  EXPECT_EQ(links.Said(1, "a", {7, 8}), std::nullopt);
  EXPECT_EQ(links.Said(1, "a", {7, 8}), std::nullopt) << "with itself";
  EXPECT_EQ(links.Said(2, "a", {7, 9}), std::nullopt);
  EXPECT_EQ(links.Said(2, "a", {7, 8}), 1u);
  EXPECT_EQ(links.Said(3, "a", {7, 9}), 2u);
}

TEST(LinkedSessions, TokensOfAnotherTenantLinkNobody) {
  LinkedSessions links;
  EXPECT_EQ(links.Said(1, "a", {7, 8}), std::nullopt);
  EXPECT_EQ(links.Said(2, "b", {7, 8}), std::nullopt);
}

TEST(LinkedSessions, AnEndedSessionIsForgotten) {
  LinkedSessions links;
  links.Said(1, "a", {7, 8});
  links.Ended(1);
  EXPECT_EQ(links.Said(2, "a", {7, 8}), std::nullopt);
}

TEST(LinkedSessions, OneSessionHasNoMoreTokensThanItMay) {
  LinkedSessions links;
  for (uint64_t i = 0; i <= LinkedSessions::kMaxTokens; ++i) links.Said(1, "a", {i, 0});
  EXPECT_EQ(links.Said(2, "a", {0, 0}), 1u);
  EXPECT_EQ(links.Said(3, "a", {LinkedSessions::kMaxTokens, 0}), std::nullopt);
}

}  // namespace
}  // namespace longwire::daemon
