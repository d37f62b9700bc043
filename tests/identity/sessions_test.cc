// What belongs to an identity: its sessions, the right to come back to them, its tenant's share.
#include "link/transport/grpc_stream.h"
#include "tests/identity/processes.h"

namespace longwire::identity {
namespace {

using testing::HasSubstr;
using testing::UnorderedElementsAre;

constexpr const char* kTenants =
    "resume_grace: 1s\n"  // how long a session stays whose connection was dropped
    "tenants:\n"
    "  - name: research\n    identities: [alice, carol]\n    sessions: 2\n"
    "  - name: serving\n    identities: [bob]\n"
    "  - name: operators\n    identities: [boss]\n    admin: true\n";

class IdentitySessionsTest : public DaemonTest {
 protected:
  struct Opened {
    std::shared_ptr<grpc::Channel> channel;
    transport::OpenSessionReply answer;
    std::unique_ptr<transport::ClientStream> stream;  // attached
    std::string sentence;                             // why not
  };

  void SetUp() override {
    DaemonTest::SetUp();
    StartDaemon(authority_.Server({"127.0.0.1"}), kTenants);
  }

  // Opens a session as `name`, without attaching to it.
  Opened Open(const std::string& name) {
    Opened opened;
    opened.channel = Connect(authority_.Client(name));
    wire::Writer writer;
    wire::OpenRequest wanted;
    wanted.lanes = 1;
    wanted.Encode(writer);
    transport::OpenSessionRequest request;
    request.set_request(writer.data(), writer.size());
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + seconds(20));
    auto stub = transport::Transport::NewStub(opened.channel);
    EXPECT_TRUE(stub->Open(&context, request, &opened.answer).ok());
    wire::OpenReply reply;
    wire::Reader reader(std::as_bytes(std::span(opened.answer.reply())));
    EXPECT_EQ(reply.Decode(reader), wire::WireResult::kOk);
    opened.sentence = reply.sentence;
    return opened;
  }

  // What the daemon answers to somebody on `channel` who has the session's token.
  uint32_t Attach(const std::shared_ptr<grpc::Channel>& channel, Opened* opened,
                  uint32_t lane = 0) {
    transport::Attach attach;
    attach.session = opened->answer.session();
    attach.lane = lane;
    const std::string& token =
        lane == 0 ? opened->answer.resume_token() : opened->answer.transfer_tokens(0);
    std::memcpy(attach.token.data(), token.data(), attach.token.size());
    attach.kept_bytes = attach.room_bytes = 1 << 20;
    std::string body = transport::EncodeAttach(attach);
    auto stream = transport::ClientStream::Connect(
        channel, seconds(5), lane == 0 ? transport::kExecute : transport::kTransfer);
    if (stream == nullptr) return 0;
    transport::FrameHeader header{0, 0, 1, transport::kFrameAttach};
    stream->StartWrite(header, std::as_bytes(std::span(body)), nullptr);
    stream->StartRead();
    uint32_t flags = 0;
    for (int events = 0; events < 2 && flags == 0; ++events) {
      auto event = stream->Wait(Clock::now() + seconds(5));
      if (event == transport::MessageStream::Event::kRead) flags = stream->received().header.flags;
    }
    opened->stream = std::move(stream);
    return flags;
  }

  static void Drop(Opened* opened) {
    if (opened->stream != nullptr) opened->stream->End(true);
    opened->stream = nullptr;
  }

  std::vector<std::string> Seen(const std::string& name) {
    transport::InspectReply reply;
    EXPECT_TRUE(Inspect(Connect(authority_.Client(name)), &reply).ok());
    std::vector<std::string> seen;
    for (const auto& session : reply.sessions()) {
      seen.push_back(session.tenant() + "/" + session.identity());
    }
    return seen;
  }
};

TEST_F(IdentitySessionsTest, ATokenIsGoodForItsOwnIdentityOnly) {
  Opened alice = Open("alice");
  ASSERT_NE(alice.answer.session(), 0u) << alice.sentence;
  for (const char* thief : {"bob", "carol", "boss"}) {
    Opened stolen;
    stolen.answer = alice.answer;
    EXPECT_EQ(Attach(Connect(authority_.Client(thief)), &stolen), transport::kFrameClosed) << thief;
    Drop(&stolen);
  }
  EXPECT_TRUE(LogSays("there is no such session, or not for this client"));
  // The owner's token is as good as before, also on another connection.
  EXPECT_EQ(Attach(Connect(authority_.Client("alice")), &alice), transport::kFrameAttached);
  Drop(&alice);
}

TEST_F(IdentitySessionsTest, ALanesTokenIsGoodForItsOwnIdentityOnly) {
  Opened alice = Open("alice");
  ASSERT_EQ(alice.answer.transfer_tokens_size(), 1) << alice.sentence;
  for (const char* thief : {"bob", "carol", "boss"}) {
    Opened stolen;
    stolen.answer = alice.answer;
    EXPECT_EQ(Attach(Connect(authority_.Client(thief)), &stolen, 1), transport::kFrameClosed)
        << thief;
    Drop(&stolen);
  }
  EXPECT_EQ(Attach(Connect(authority_.Client("alice")), &alice, 1), transport::kFrameAttached);
  Drop(&alice);
}

TEST_F(IdentitySessionsTest, ATenantHasItsNumberOfSessions) {
  Opened first = Open("alice"), second = Open("carol");
  ASSERT_EQ(Attach(first.channel, &first), transport::kFrameAttached);
  ASSERT_EQ(Attach(second.channel, &second), transport::kFrameAttached);
  Opened third = Open("alice");
  EXPECT_EQ(third.answer.session(), 0u);
  EXPECT_THAT(third.sentence,
              HasSubstr("the tenant 'research' has 2 sessions already; its limit is 2"));
  EXPECT_TRUE(LogSays("the tenant 'research' has 2 sessions already"));
  Opened other = Open("bob");
  EXPECT_NE(other.answer.session(), 0u) << other.sentence;
  // What ends makes room.
  Drop(&first);
  EXPECT_TRUE(daemon::Eventually([&] { return Open("alice").answer.session() != 0; }, seconds(20)));
  Drop(&second);
}

TEST_F(IdentitySessionsTest, EverybodySeesTheirTenantsSessions) {
  Opened alice = Open("alice"), bob = Open("bob");
  ASSERT_EQ(Attach(alice.channel, &alice), transport::kFrameAttached);
  ASSERT_EQ(Attach(bob.channel, &bob), transport::kFrameAttached);
  EXPECT_THAT(Seen("alice"), UnorderedElementsAre("research/alice"));
  EXPECT_THAT(Seen("carol"), UnorderedElementsAre("research/alice"));
  EXPECT_THAT(Seen("bob"), UnorderedElementsAre("serving/bob"));
  EXPECT_THAT(Seen("boss"), UnorderedElementsAre("research/alice", "serving/bob"));
  Drop(&alice);
  Drop(&bob);
}

TEST_F(IdentitySessionsTest, AReloadTakesOverTenantsAndTheCertificate) {
  EXPECT_THAT(ThroughLink(authority_.Client("dora")), HasSubstr("does not know the identity"));
  transport::TlsFiles next = authority_.Server({"127.0.0.1"}, Hours(-1, 9), "next");
  WriteConfiguration(next, std::string(kTenants) + "  - name: new\n    identities: [dora]\n");
  daemon_->Signal(SIGHUP);
  ASSERT_TRUE(LogSays("in force now")) << Log();
  EXPECT_EQ(ThroughLink(authority_.Client("dora")), "");
  EXPECT_TRUE(LogSays("certificate " + next.certificate)) << Log();
  WriteConfiguration(authority_.Server({"127.0.0.1"}, Hours(-9, -3), "old"), "");
  daemon_->Signal(SIGHUP);
  ASSERT_TRUE(LogSays("refused: all stays as it was")) << Log();
  EXPECT_EQ(ThroughLink(authority_.Client("dora")), "");
}

}  // namespace
}  // namespace longwire::identity
