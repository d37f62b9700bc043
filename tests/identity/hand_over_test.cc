// Who may hand a session over to a server, and whose: all that is refused before a worker is
// started.
#include "link/transport/grpc_stream.h"
#include "server/daemon/moving/step_stream.h"
#include "server/protocol/moving.h"
#include "tests/identity/processes.h"

namespace longwire::identity {
namespace {

using testing::HasSubstr;

constexpr const char* kMove = "0123456789abcdef0123456789abcdef";
constexpr const char* kConfig =
    "moves_from: [gpu1, alice]\n"
    "tenants:\n"
    "  - name: research\n    identities: [alice]\n"
    "  - name: serving\n    identities: [bob]\n"
    "  - name: watching\n    identities: [carol]\n    monitor: true\n";

class HandOverTest : public DaemonTest {
 protected:
  void SetUp() override {
    DaemonTest::SetUp();
    StartDaemon(authority_.Server({"127.0.0.1"}), kConfig);
  }

  // What is said to the holder of these files who sends the step; "done" if that is done.
  std::string Send(const transport::TlsFiles& files, const transport::HandOverStep& step) {
    std::shared_ptr<transport::ClientStream> call =
        transport::ClientStream::Connect(Connect(files), seconds(5), transport::kHandOver);
    if (call == nullptr) return "no connection";
    daemon::StepStream stream(call);
    transport::HandOverAnswer answer;
    std::string problem;
    if (stream.Send(step, seconds(5), &problem) && stream.Receive(&answer, seconds(20), &problem)) {
      return answer.done() ? "done" : answer.sentence();
    }
    const std::string said = stream.End();
    return said.empty() ? problem : said;
  }

  transport::HandOverStep Offer(const std::string& identity, const std::string& tenant,
                                const transport::TlsFiles& shown) {
    std::string sentence;
    transport::HandOverStep step;
    transport::HandOverOffer& offer = *step.mutable_offer();
    offer.set_format(moving::kVersion);
    offer.set_move(kMove);
    offer.set_identity(identity);
    offer.set_tenant(tenant);
    offer.set_certificates(certificates::ReadText(shown.certificate, &sentence).value_or(""));
    return step;
  }

  static transport::HandOverStep End(transport::HandOverEnd::Kind kind,
                                     const std::string& move = kMove) {
    transport::HandOverStep step;
    step.mutable_end()->set_move(move);
    step.mutable_end()->set_kind(kind);
    return step;
  }

  const transport::TlsFiles gpu1_ = authority_.Peer({"gpu1"});
  const transport::TlsFiles alice_ = authority_.Client("alice");
};

TEST_F(HandOverTest, OnlyServersThatAreNamedMay) {
  const auto offer = Offer("alice", "research", alice_);
  EXPECT_THAT(Send(authority_.Peer({"gpu2"}), offer), HasSubstr("takes no sessions from 'gpu2'"));
  EXPECT_THAT(Send(authority_.Peer({"gpu2"}), End(transport::HandOverEnd::BEGIN)),
              HasSubstr("takes no sessions from 'gpu2'"));
  EXPECT_THAT(Send(alice_, offer), HasSubstr("the certificate of 'alice' is no server's"));
  EXPECT_THAT(Send(authority_.Client("bob"), offer), HasSubstr("'bob' is no server's"));
  // Gets as far as the session itself.
  EXPECT_EQ(Send(gpu1_, offer), "the session's opening cannot be read");
}

TEST_F(HandOverTest, AnotherAuthorityIsNoProof) {
  Authority other(folder_ / "other", "Another authority");
  EXPECT_NE(Send(other.Peer({"gpu1"}), Offer("alice", "research", alice_)), "done");
  EXPECT_THAT(Send(gpu1_, Offer("alice", "research", other.Client("alice"))),
              HasSubstr("of an authority that longwired does not trust"));
}

TEST_F(HandOverTest, TheCertificateSaysWhoseTheSessionIs) {
  const transport::TlsFiles bob = authority_.Client("bob");
  EXPECT_THAT(Send(gpu1_, Offer("alice", "research", bob)),
              HasSubstr("the certificate is of 'bob', and the session of 'alice'"));
  EXPECT_THAT(Send(gpu1_, Offer("alice", "research", {})), HasSubstr("certificate"));
  EXPECT_THAT(Send(gpu1_, Offer("alice", "serving", alice_)),
              HasSubstr("'alice' belongs to the tenant 'research' here, and to 'serving' there"));
  EXPECT_THAT(Send(gpu1_, Offer("eve", "research", authority_.Client("eve"))),
              HasSubstr("does not know the identity 'eve'"));
  EXPECT_THAT(Send(gpu1_, Offer("carol", "watching", authority_.Client("carol"))),
              HasSubstr("may read metrics and status only"));
  const auto late = authority_.Client("alice", Hours(-20, -10), "late");
  EXPECT_THAT(Send(gpu1_, Offer("alice", "research", late)), HasSubstr("expired"));
}

TEST_F(HandOverTest, NothingBeginsThatWasNotPrepared) {
  EXPECT_THAT(Send(gpu1_, End(transport::HandOverEnd::BEGIN)),
              HasSubstr("there is no such session that waits to begin"));
  EXPECT_THAT(Send(gpu1_, End(transport::HandOverEnd::DISCARD)), HasSubstr("no such session"));
  EXPECT_EQ(Send(gpu1_, End(transport::HandOverEnd::FORGET)), "done");
  for (const char* move : {"", "../../door", "0123456789ABCDEF0123456789ABCDEF"}) {
    EXPECT_THAT(Send(gpu1_, End(transport::HandOverEnd::BEGIN, move)), HasSubstr("no step"));
  }
}

TEST_F(HandOverTest, NobodyJoinsWhatWasNotOffered) {
  transport::HandOverStep join;
  join.mutable_join()->set_move(kMove);
  EXPECT_THAT(Send(gpu1_, join), HasSubstr("no session arrives by that move"));
  EXPECT_THAT(Send(authority_.Peer({"gpu2"}), join), HasSubstr("takes no sessions from 'gpu2'"));
  join.mutable_join()->set_move("../../door");
  EXPECT_THAT(Send(gpu1_, join), HasSubstr("no session arrives by that move"));
}

TEST_F(HandOverTest, WhatIsNoStepIsRefused) {
  transport::HandOverStep content;
  content.set_content("of what");
  EXPECT_THAT(Send(gpu1_, content), HasSubstr("no step of a move"));
  EXPECT_THAT(Send(gpu1_, transport::HandOverStep()), HasSubstr("no step of a move"));
  EXPECT_THAT(Send(gpu1_, End(transport::HandOverEnd::UNKNOWN)), HasSubstr("no step of a move"));
  auto other = Offer("alice", "research", alice_);
  other.mutable_offer()->set_format(moving::kVersion + 1);
  EXPECT_THAT(Send(gpu1_, other), HasSubstr("have the same version at both"));
}

}  // namespace
}  // namespace longwire::identity
