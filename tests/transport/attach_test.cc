// Who may attach to a session and from where, by the transport's own frames.
#include "tests/transport/attach_fixture.h"

namespace longwire::daemon {
namespace {

TEST_F(AttachTest, OnlyTheRightTokenAttaches) {
  Open();
  transport::Attach wrong = Right();
  wrong.token[31] ^= std::byte{1};
  Answer answer = Attach(wrong, 1);
  EXPECT_EQ(answer.flags, transport::kFrameClosed);
  answer.stream->End(true);
  wrong = Right();
  wrong.session += 1;
  answer = Attach(wrong, 1);
  EXPECT_EQ(answer.flags, transport::kFrameClosed);
  answer.stream->End(true);
  answer = Attach(Right(), 1);
  EXPECT_EQ(answer.flags, transport::kFrameAttached);
  transport::Attached attached;
  EXPECT_EQ(DecodeAttached(std::as_bytes(std::span(answer.body)), &attached),
            wire::WireResult::kOk);
  answer.stream->End(true);
}

// The other end of a bridge needs the ticket, and the secret of the session that it was made for.
TEST_F(AttachTest, ABridgeTakesItsTicketOnly) {
  Open();
  BridgeRights there, another;
  const transport::Token offer = there.Offer(1).value();
  BridgeRights& rights = table_->Find(opened_.session())->bridge_rights();
  const auto ticket = [&](std::chrono::seconds age = std::chrono::seconds(0)) {
    return rights.Ticket(1, 1, HashToken(offer), Clock::now() - age).value();
  };
  uint32_t epoch = 0;
  auto answered = [&](uint32_t lane, const transport::Token& token, const transport::Token& shown,
                      const char* method = transport::kTransfer) {
    transport::Attach attach = Right();
    attach.lane = lane;
    attach.token = token;
    attach.offer = shown;
    Answer answer = Attach(attach, ++epoch, method);
    answer.stream->End(true);
    return answer.flags;
  };
  transport::Token lanes_own{};
  std::memcpy(lanes_own.data(), opened_.transfer_tokens(0).data(), lanes_own.size());
  EXPECT_EQ(answered(1, {}, offer), transport::kFrameClosed) << "without any ticket";
  EXPECT_EQ(answered(1, lanes_own, offer), transport::kFrameClosed);
  EXPECT_EQ(answered(1, ticket(), another.Offer(1).value()), transport::kFrameClosed)
      << "of another session";
  EXPECT_EQ(answered(1, ticket(BridgeRights::kTicketTime), offer), transport::kFrameClosed)
      << "too old";
  EXPECT_EQ(answered(2, ticket(), offer), transport::kFrameClosed) << "for another lane";
  EXPECT_EQ(answered(0, ticket(), offer), transport::kFrameClosed) << "the session's own logs";
  const transport::Token good = ticket();
  EXPECT_EQ(answered(1, good, offer), transport::kFrameAttached);
  EXPECT_EQ(answered(1, good, offer), transport::kFrameClosed) << "a second time";
}

// A stream of bulk joins a session by the token of its own lane and by nothing else.
TEST_F(AttachTest, ALaneTakesItsOwnTokenOnly) {
  Open();
  ASSERT_EQ(opened_.transfer_tokens_size(), 2);
  auto right = [&](uint32_t lane) {
    transport::Attach attach = Right();
    attach.lane = lane;
    std::memcpy(attach.token.data(), opened_.transfer_tokens(static_cast<int>(lane) - 1).data(),
                attach.token.size());
    return attach;
  };
  auto answered = [&](const transport::Attach& attach, const char* method) {
    Answer answer = Attach(attach, 1, method);
    answer.stream->End(true);
    return answer.flags;
  };
  transport::Attach log_token = Right();
  log_token.lane = 1;
  EXPECT_EQ(answered(log_token, transport::kTransfer), transport::kFrameClosed);
  transport::Attach neighbour = right(2);
  neighbour.lane = 1;
  EXPECT_EQ(answered(neighbour, transport::kTransfer), transport::kFrameClosed);
  transport::Attach other_session = right(1);
  other_session.session += 1;
  EXPECT_EQ(answered(other_session, transport::kTransfer), transport::kFrameClosed);
  for (uint32_t nowhere : {3u, 0xffffffffu}) {
    transport::Attach beyond = right(2);
    beyond.lane = nowhere;
    EXPECT_EQ(answered(beyond, transport::kTransfer), transport::kFrameClosed) << nowhere;
  }
  EXPECT_EQ(answered(right(1), transport::kExecute), transport::kFrameClosed);
  EXPECT_EQ(answered(Right(), transport::kTransfer), transport::kFrameClosed);
  EXPECT_EQ(answered(right(1), transport::kTransfer), transport::kFrameAttached);
  EXPECT_EQ(answered(right(2), transport::kTransfer), transport::kFrameAttached);
}

TEST_F(AttachTest, AnOlderEpochIsRefused) {
  Open();
  Answer first = Attach(Right(), 5);
  ASSERT_EQ(first.flags, transport::kFrameAttached);
  TakeToken(first.body);
  Answer second = Attach(Right(), 5);
  EXPECT_NE(second.flags, transport::kFrameAttached);
  first.stream->End(true);
  second.stream->End(true);
}

TEST_F(AttachTest, APositionFromTheFutureIsRefused) {
  Open();
  Answer answer = Attach(Right(1 << 20), 1);
  EXPECT_NE(answer.flags, transport::kFrameAttached);
  answer.stream->End(true);
}

TEST_F(AttachTest, AHalfDeadConnectionIsReplaced) {
  Open();
  Answer first = Attach(Right(), 1);
  ASSERT_EQ(first.flags, transport::kFrameAttached);
  TakeToken(first.body);
  Answer second = Attach(Right(), 2);
  EXPECT_EQ(second.flags, transport::kFrameAttached);
  first.stream->StartRead();
  EXPECT_EQ(first.stream->Wait(Clock::now() + seconds(5)),
            transport::MessageStream::Event::kBroken);
  first.stream->End(true);
  second.stream->End(true);
}

TEST_F(AttachTest, ASessionThatNobodyAttachesToIsFreed) {
  Open();
  EXPECT_EQ(warden_->living(), 1u);
  EXPECT_TRUE(Eventually([&] { return warden_->living() == 0; }));
}

class ShortGraceTest : public AttachTest {
 protected:
  void SetUp() override {
    config_.set_resume_grace(std::chrono::nanoseconds(seconds(1)).count());
    AttachTest::SetUp();
  }
};

TEST_F(ShortGraceTest, ABrokenConnectionIsHeldForItsGraceOnly) {
  Open();
  Answer answer = Attach(Right(), 1);
  ASSERT_EQ(answer.flags, transport::kFrameAttached);
  answer.stream->End(true);
  std::this_thread::sleep_for(milliseconds(200));
  EXPECT_EQ(warden_->living(), 1u);
  EXPECT_TRUE(NothingLeft());
}

// An answer with a new token can be lost together with its connection.
class LostAnswerTest : public AttachTest {
 protected:
  void SetUp() override {
    config_.set_resume_grace(std::chrono::nanoseconds(seconds(20)).count());
    AttachTest::SetUp();
  }

  // The answer is on its way, or beyond, and never read.
  void AttachUnheard(uint32_t epoch) {
    auto stream = transport::ClientStream::Connect(channel_, seconds(3), transport::kExecute);
    ASSERT_NE(stream, nullptr);
    std::string body = EncodeAttach(Right());
    stream->StartWrite({0, 0, epoch, transport::kFrameAttach}, std::as_bytes(std::span(body)),
                       nullptr);
    ASSERT_EQ(stream->Wait(Clock::now() + seconds(3)), transport::MessageStream::Event::kWritten);
    // A session's first attach goes with its first calls, without waiting for the answer.
    bool first = epoch == 1;
    std::string log(64, 'x');
    if (first) {
      stream->StartWrite({0, 0, epoch, 0}, std::as_bytes(std::span(log)), nullptr);
      ASSERT_EQ(stream->Wait(Clock::now() + seconds(3)), transport::MessageStream::Event::kWritten);
    }
    auto session = table_->Find(opened_.session());
    EXPECT_TRUE(
        Eventually([&] { return session->epoch() == epoch && session->messages_up() == 1; }));
    stream->End(true);
    EXPECT_TRUE(Eventually([&] { return session->detached_since() <= Clock::now(); }));
  }
};

TEST_F(LostAnswerTest, TheFirstOneBehindTheFirstCalls) {
  Open();
  AttachUnheard(1);
  Answer second = Attach(Right(), 2);
  EXPECT_EQ(second.flags, transport::kFrameAttached) << second.body;
  second.stream->End(true);
}

TEST_F(LostAnswerTest, SeveralInARow) {
  Open();
  for (uint32_t epoch : {1, 2, 3}) AttachUnheard(epoch);
  Answer last = Attach(Right(), 4);
  EXPECT_EQ(last.flags, transport::kFrameAttached) << last.body;
  last.stream->End(true);
}

// Who has shown the newer token has no use for the older one; somebody else might.
TEST_F(LostAnswerTest, AnOlderTokenThanTheLastShownIsRefused) {
  Open();
  Answer first = Attach(Right(), 1);
  std::string oldest = opened_.resume_token();
  ASSERT_EQ(first.flags, transport::kFrameAttached);
  first.stream->End(true);
  TakeToken(first.body);
  Answer second = Attach(Right(), 2);
  ASSERT_EQ(second.flags, transport::kFrameAttached);
  second.stream->End(true);
  TakeToken(oldest);
  Answer third = Attach(Right(), 3);
  EXPECT_EQ(third.flags, transport::kFrameClosed);
  third.stream->End(true);
}

}  // namespace
}  // namespace longwire::daemon
