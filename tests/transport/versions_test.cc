// Programs, links and wardens of other versions with this daemon and this link.
#include "proto/transport.grpc.pb.h"
#include "tests/transport/session_fixture.h"
#include "tests/versions/fixtures.h"
#include "wire/view.h"

namespace longwire::daemon {
namespace {

class VersionsTest : public SessionTest {
 protected:
  std::map<std::string, std::vector<std::byte>> recorded_ =
      versions::ReadFixtures(FIXTURES "/13.hex");

  std::vector<std::string> Sockets() { return {config_.local_socket(), options_.socket}; }

  // A request as a link sends it that speaks these versions; 0: it says none.
  wire::OpenReply OpenBy(uint32_t oldest, uint32_t newest) {
    transport::OpenSessionRequest request;
    wire::Writer writer;
    wire::OpenRequest().Encode(writer);
    request.set_request(writer.data(), writer.size());
    request.set_oldest_protocol(oldest);
    request.set_newest_protocol(newest);
    transport::OpenSessionReply answer;
    grpc::ClientContext context;
    auto channel = transport::OpenChannel(config_.listen(0), nullptr);
    auto status = transport::Transport::NewStub(channel)->Open(&context, request, &answer);
    EXPECT_TRUE(status.ok()) << status.error_message();
    wire::OpenReply reply;
    wire::Reader reader(std::as_bytes(std::span(answer.reply())));
    EXPECT_EQ(reply.Decode(reader), wire::WireResult::kOk);
    return reply;
  }
};

TEST_F(VersionsTest, AProgramOfTheVersionBeforeIsServed) {
  for (const std::string& door : Sockets()) {
    Program program;
    ASSERT_TRUE(program.Send(door, recorded_.at("open-request"))) << program.reply.sentence;
    EXPECT_EQ(program.reply.protocol, wire::kLastWithoutRange);
    EXPECT_TRUE(program.Echo("as before"));
  }
}

TEST_F(VersionsTest, AViewOfTheVersionBeforeIsAnswered) {
  for (const std::string& door : Sockets()) {
    wire::Descriptor socket = wire::ConnectLocal(door);
    ASSERT_TRUE(wire::SendMessage(socket.get(), recorded_.at("view-request")));
    auto answer = wire::ReceiveMessage(socket.get(), seconds(8));
    ASSERT_TRUE(answer);
    wire::ViewReply reply;
    wire::Reader reader(answer->bytes);
    ASSERT_EQ(reply.Decode(reader), wire::WireResult::kOk);
    EXPECT_EQ(reply.protocol, wire::kLastWithoutRange);
    EXPECT_FALSE(wire::HasRange(answer->bytes));
  }
}

TEST_F(VersionsTest, AProgramOfThisVersionGetsIt) {
  for (const std::string& door : Sockets()) {
    Program program;
    ASSERT_TRUE(program.Open(door)) << program.reply.sentence;
    EXPECT_EQ(program.reply.protocol, wire::kBuiltVersions.newest);
  }
}

TEST_F(VersionsTest, ALinkCarriesWhatItSpeaks) {
  EXPECT_EQ(OpenBy(0, 0).protocol, wire::kLastWithoutRange) << "an older link";
  EXPECT_EQ(OpenBy(13, 13).protocol, 13u);
  EXPECT_EQ(OpenBy(1, UINT32_MAX).protocol, wire::kBuiltVersions.newest);
  EXPECT_EQ(OpenBy(15, 16).sentence,
            "longwire-link on the client's host speaks protocol 15 to 16, this server protocol 13 "
            "to 14: upgrade longwired on the server");
}

TEST_F(VersionsTest, AProgramTooNewOrTooOldForTheLinkHearsWhy) {
  Program newer, older;
  EXPECT_FALSE(newer.Open(options_.socket, {15, 16}));
  EXPECT_EQ(newer.reply.code, 803);
  EXPECT_EQ(newer.reply.sentence,
            "the client speaks protocol 15 to 16, longwire-link on its host protocol 13 to 14: "
            "upgrade Longwire on the client");
  EXPECT_FALSE(older.Open(options_.socket, {12, 12}));
  EXPECT_EQ(older.reply.code, 803);
}

TEST_F(VersionsTest, HostileRangesHarmNobody) {
  Program stays;
  ASSERT_TRUE(stays.Open(options_.socket));
  const wire::VersionRange hostile[] = {
      {0, 0}, {14, 13}, {0, UINT32_MAX}, {UINT32_MAX, 0}, {UINT32_MAX, UINT32_MAX}};
  for (wire::VersionRange versions : hostile) {
    for (const std::string& door : Sockets()) {
      Program program;
      EXPECT_FALSE(program.Open(door, versions));
      EXPECT_EQ(program.reply.code, 803);
      EXPECT_FALSE(program.reply.sentence.empty());
    }
    if (versions != wire::VersionRange()) {
      EXPECT_EQ(OpenBy(versions.oldest, versions.newest).code, 803);
    }
  }
  EXPECT_TRUE(stays.Echo("unharmed"));
}

TEST_F(VersionsTest, AWardenOfTheVersionBeforeIsFoundOut) {
  StopDaemon();
  warden_->set_knows_hello(false);
  StartDaemon();
  Program program;
  ASSERT_TRUE(program.Open(config_.local_socket())) << program.reply.sentence;
  EXPECT_TRUE(program.Echo("by an older warden"));
}

}  // namespace
}  // namespace longwire::daemon
