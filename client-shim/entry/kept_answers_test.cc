// Which answers are kept, and under what.
#include "client-shim/entry/kept_answers.h"

#include <gtest/gtest.h>

#include "client-shim/session/session.h"

namespace longwire::shim {
namespace {

using Bytes = std::vector<std::byte>;

wire::Writer Arguments(uint64_t value) {
  wire::Writer arguments;
  arguments.U64(value);
  return arguments;
}

TEST(KeptAnswersTest, TheSameCallInTheSameContextFindsIt) {
  KeptAnswers answers;
  Where where;
  where.context = 3;
  answers.Keep(KeyOfAnswer(7, where, Arguments(5)), Bytes(4, std::byte{9}));
  EXPECT_EQ(answers.Find(KeyOfAnswer(7, where, Arguments(5))), Bytes(4, std::byte{9}));
}

TEST(KeptAnswersTest, AnotherCallContextServerOrArgumentDoesNot) {
  KeptAnswers answers;
  Where where;
  where.context = 3;
  answers.Keep(KeyOfAnswer(7, where, Arguments(5)), Bytes(4));
  EXPECT_EQ(answers.Find(KeyOfAnswer(8, where, Arguments(5))), std::nullopt);
  EXPECT_EQ(answers.Find(KeyOfAnswer(7, where, Arguments(6))), std::nullopt);
  Where other = where;
  other.context = 4;
  EXPECT_EQ(answers.Find(KeyOfAnswer(7, other, Arguments(5))), std::nullopt);
  other = where;
  other.session = reinterpret_cast<ClientSession*>(&other);
  EXPECT_EQ(answers.Find(KeyOfAnswer(7, other, Arguments(5))), std::nullopt);
}

TEST(KeptAnswersTest, ThereAreNeverMoreThanTheLimit) {
  KeptAnswers answers;
  for (uint64_t i = 0; i < 3 * KeptAnswers::kMaxAnswers; ++i) {
    answers.Keep(KeyOfAnswer(7, {}, Arguments(i)), Bytes(4));
    ASSERT_LE(answers.size(), KeptAnswers::kMaxAnswers);
    ASSERT_NE(answers.Find(KeyOfAnswer(7, {}, Arguments(i))), std::nullopt);
  }
}

}  // namespace
}  // namespace longwire::shim
