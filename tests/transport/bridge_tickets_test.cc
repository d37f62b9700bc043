// Who may connect to a session's lane as the other end of a bridge, by the transport's own frames:
// the holder of a ticket that was made for this session and that one, once, and in time.
#include "server/daemon/bridges/rights.h"
#include "tests/transport/attach_fixture.h"

namespace longwire::daemon {
namespace {

class BridgeTicketsTest : public AttachTest {
 protected:
  void SetUp() override {
    AttachTest::SetUp();
    Open();
    here_ = opened_.session();
    Open();
    another_ = opened_.session();
    ASSERT_NE(here_, another_);
    offer_ = there_.Offer(1).value();
  }

  // A ticket for lanes 1 and 2 of the session, made for the one whose offer this is.
  transport::Token TicketFor(uint64_t session, seconds ago = seconds(0)) {
    return table_->Find(session)
        ->bridge_rights()
        .Ticket(1, 2, HashToken(offer_), Clock::now() - ago)
        .value();
  }

  transport::Attach AttachTo(uint64_t session, const transport::Token& ticket) {
    transport::Attach attach;
    attach.session = session;
    attach.token = ticket;
    attach.lane = 1;
    attach.offer = offer_;
    return attach;
  }

  // Whether it is let in; the sentence if it is not.
  std::string Refusal(const transport::Attach& attach) {
    Answer answer = Attach(attach, 1, transport::kTransfer);
    answer.stream->End(true);
    if (answer.flags == transport::kFrameAttached) return {};
    transport::Closed closed;
    EXPECT_EQ(answer.flags, transport::kFrameClosed);
    EXPECT_EQ(DecodeClosed(std::as_bytes(std::span(answer.body)), &closed), wire::WireResult::kOk);
    return closed.sentence;
  }

  uint64_t here_ = 0, another_ = 0;  // sessions of this server
  BridgeRights there_;               // of the session at the other server
  transport::Token offer_{};
};

constexpr const char* kNotGood =
    "the ticket for a bridge between two servers is not good (any more)";

TEST_F(BridgeTicketsTest, WithoutATicketNobodyComesIn) {
  EXPECT_EQ(Refusal(AttachTo(here_, {})), kNotGood);
  // Nor where there is one that somebody else has.
  (void)TicketFor(here_);
  EXPECT_EQ(Refusal(AttachTo(here_, {})), kNotGood);
  // Nor with the right to the session itself.
  transport::Token resume{};
  std::memcpy(resume.data(), opened_.resume_token().data(), resume.size());
  EXPECT_EQ(Refusal(AttachTo(another_, resume)), kNotGood);
}

TEST_F(BridgeTicketsTest, AnotherSessionsTicketOpensNothing) {
  const transport::Token ticket = TicketFor(another_);
  EXPECT_EQ(Refusal(AttachTo(here_, ticket)), kNotGood);
  transport::Attach by_another = AttachTo(another_, ticket);
  BridgeRights other;
  by_another.offer = other.Offer(1).value();
  EXPECT_EQ(Refusal(by_another), kNotGood) << "it was made for another session there";
}

TEST_F(BridgeTicketsTest, AnExpiredTicketOpensNothing) {
  const transport::Token ticket = TicketFor(here_, BridgeRights::kTicketTime);
  EXPECT_EQ(Refusal(AttachTo(here_, ticket)), kNotGood);
}

TEST_F(BridgeTicketsTest, TheRightTicketOpensOnce) {
  const transport::Token ticket = TicketFor(here_);
  EXPECT_EQ(Refusal(AttachTo(here_, ticket)), "");
  EXPECT_EQ(Refusal(AttachTo(here_, ticket)), kNotGood);
}

TEST_F(BridgeTicketsTest, LanesThatAreNotThereAreRefused) {
  const transport::Token ticket = TicketFor(here_);
  for (uint32_t lane : {0u, 3u, UINT32_MAX}) {
    transport::Attach attach = AttachTo(here_, ticket);
    attach.lane = lane;
    EXPECT_EQ(Refusal(attach), kNotGood) << lane;
  }
}

}  // namespace
}  // namespace longwire::daemon
