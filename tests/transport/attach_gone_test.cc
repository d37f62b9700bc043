// Who attaches to a session that moves, or has gone to another server.
#include <gmock/gmock.h>

#include <ctime>

#include "tests/transport/attach_fixture.h"

namespace longwire::daemon {
namespace {

TEST_F(AttachTest, OnlyWhoHasARightWaitsForASessionThatIsHeld) {
  Open();
  ASSERT_TRUE(table_->Find(opened_.session())->Pause());
  transport::Attach wrong = Right();
  wrong.token[0] ^= std::byte{1};
  const auto began = Clock::now();
  Answer answer = Attach(wrong, 1);
  EXPECT_EQ(answer.flags, transport::kFrameClosed);
  EXPECT_LT(Clock::now() - began, seconds(1)) << "it was looked at after a wait";
  answer.stream->End(true);
  transport::Attach right = Right();
  right.understands_terms = 1;
  answer = Attach(right, 1);
  EXPECT_EQ(answer.flags, transport::kFrameTerms);
  EXPECT_GT(Clock::now() - began, seconds(1)) << "it may be there again in a moment";
  answer.stream->End(true);
  table_->Find(opened_.session())->Resume();
  answer = Attach(Right(), 2);
  EXPECT_EQ(answer.flags, transport::kFrameAttached);
  answer.stream->End(true);
}

class AttachGoneTest : public AttachTest {
 protected:
  void SetUp() override {
    AttachTest::SetUp();
    channel_ = transport::OpenChannel(config_.listen(0), nullptr);
    ASSERT_TRUE(NewToken(&token_));
    const TokenHash hash = HashToken(token_);
    GoneSession gone;
    gone.move = NewMove();
    gone.numbers = {kBefore, kGone};
    gone.identity = "loopback";
    gone.tenant = "default";
    gone.server = "127.0.0.1:1";
    gone.session = 77;
    gone.since = static_cast<uint64_t>(time(nullptr));
    gone.patience = 60;
    gone.lanes = {{std::string(hash.begin(), hash.end()), "", 0, 1, false, false}};
    std::string sentence;
    ASSERT_TRUE(table_->move_notes().Add(gone, &sentence)) << sentence;
  }

  transport::Attach Ask(uint64_t session, uint32_t understands) const {
    transport::Attach attach;
    attach.session = session;
    attach.token = token_;
    attach.understands_terms = understands;
    return attach;
  }
  uint32_t Flags(const transport::Attach& attach) {
    last_ = Attach(attach, 2);
    last_.stream->End(true);
    return last_.flags;
  }

  static constexpr uint64_t kBefore = 424'242, kGone = 424'243;
  transport::Token token_{};
  Answer last_;
};

TEST_F(AttachGoneTest, ItsClientWaitsUntilItHasBegunAndThenGoesThere) {
  EXPECT_EQ(Flags(Ask(kGone, transport::kUnderstandsMoves)), transport::kFrameTerms);
  table_->move_notes().SetBegun(kGone);
  for (uint64_t number : {kBefore, kGone}) {
    ASSERT_EQ(Flags(Ask(number, transport::kUnderstandsMoves)), transport::kFrameMoved);
    transport::Moved moved;
    ASSERT_EQ(DecodeMoved(std::as_bytes(std::span(last_.body)), &moved), wire::WireResult::kOk);
    EXPECT_EQ(moved.session, 77u);
    EXPECT_EQ(moved.server, "127.0.0.1:1");
  }
}

TEST_F(AttachGoneTest, AnOlderLinkHearsWhy) {
  table_->move_notes().SetBegun(kGone);
  ASSERT_EQ(Flags(Ask(kGone, 1)), transport::kFrameClosed);
  transport::Closed closed;
  ASSERT_EQ(DecodeClosed(std::as_bytes(std::span(last_.body)), &closed), wire::WireResult::kOk);
  EXPECT_THAT(closed.sentence, testing::HasSubstr("too old to go there"));
  EXPECT_THAT(closed.sentence, testing::HasSubstr("127.0.0.1:1"));
}

TEST_F(AttachGoneTest, NobodyElseLearnsWhereItIs) {
  table_->move_notes().SetBegun(kGone);
  transport::Attach wrong = Ask(kGone, transport::kUnderstandsMoves);
  wrong.token[5] ^= std::byte{1};
  EXPECT_EQ(Flags(wrong), transport::kFrameClosed);
  wrong = Ask(kGone, transport::kUnderstandsMoves);
  wrong.lane = 1;
  EXPECT_EQ(Flags(wrong), transport::kFrameClosed);
  EXPECT_EQ(Flags(Ask(kGone + 1, transport::kUnderstandsMoves)), transport::kFrameClosed);
}

}  // namespace
}  // namespace longwire::daemon
