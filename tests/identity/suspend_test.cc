// Suspend: a program reaches the session of its own identity, host and process, and no other.
#include "server/daemon/checkpoints/suspended.h"
#include "server/daemon/sessions/session_record.h"
#include "tests/identity/processes.h"

namespace longwire::identity {
namespace {

using testing::HasSubstr;
using transport::SuspendRequest;

constexpr uint32_t kPid = 4711;
constexpr const char* kHost = "desk";
constexpr const char* kTenants =
    "tenants:\n"
    "  - name: research\n    identities: [alice, carol]\n"
    "  - name: serving\n    identities: [bob]\n"
    "  - name: operators\n    identities: [boss]\n    admin: true\n";

class IdentitySuspendTest : public DaemonTest {
 protected:
  uint64_t Open(const std::string& name) {
    wire::OpenRequest wanted;
    wanted.pid = kPid;
    wanted.host = kHost;
    wire::Writer writer;
    wanted.Encode(writer);
    transport::OpenSessionRequest request;
    request.set_request(writer.data(), writer.size());
    transport::OpenSessionReply answer;
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + seconds(20));
    const auto channel = Connect(authority_.Client(name));
    EXPECT_TRUE(transport::Transport::NewStub(channel)->Open(&context, request, &answer).ok());
    return answer.session();
  }

  transport::SuspendReply Ask(const std::string& name, uint64_t session, SuspendRequest::Wish wish,
                              uint32_t pid = kPid, const std::string& host = kHost) {
    SuspendRequest request;
    request.set_wish(wish);
    request.set_session(session);
    request.set_client_pid(pid);
    request.set_client_host(host);
    transport::SuspendReply reply;
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + seconds(20));
    const auto channel = Connect(authority_.Client(name));
    EXPECT_TRUE(transport::Transport::NewStub(channel)->Suspend(&context, request, &reply).ok());
    return reply;
  }

  // Whatever they wish, they hear the same as of a session that is not there.
  void ExpectRefused(const std::string& name, uint64_t session, uint32_t pid = kPid,
                     const std::string& host = kHost) {
    for (auto wish : {SuspendRequest::STATE, SuspendRequest::SUSPEND, SuspendRequest::RESTORE}) {
      const transport::SuspendReply reply = Ask(name, session, wish, pid, host);
      EXPECT_FALSE(reply.known()) << name;
      EXPECT_FALSE(reply.suspended()) << name;
      EXPECT_FALSE(reply.done()) << name;
      EXPECT_THAT(reply.sentence(), HasSubstr("this server has no session " +
                                              std::to_string(session) + " of this program"));
    }
  }

  void ExpectOthersRefused(uint64_t session) {
    for (const char* thief : {"bob", "carol", "boss"}) ExpectRefused(thief, session);
    ExpectRefused("alice", session, kPid + 1);
    ExpectRefused("alice", session, kPid, "another");
  }
};

TEST_F(IdentitySuspendTest, ARunningSessionIsItsOwnPrograms) {
  StartDaemon(authority_.Server({"127.0.0.1"}), kTenants);
  const uint64_t session = Open("alice");
  ASSERT_NE(session, 0u) << Log();
  EXPECT_TRUE(Ask("alice", session, SuspendRequest::STATE).known()) << Log();
  ExpectOthersRefused(session);
  EXPECT_TRUE(Ask("alice", session, SuspendRequest::STATE).known()) << Log();
}

TEST_F(IdentitySuspendTest, ASuspendedSessionIsItsOwnPrograms) {
  constexpr uint64_t kSession = 123;
  const std::string folder = folder_ / "suspended";
  daemon::SessionRecord record;
  record.pid = kPid;
  record.host = kHost;
  record.lanes = 1;
  daemon::Ticket ticket;
  ticket.numbers = {kSession};
  ticket.identity = record.identity = "alice";
  ticket.tenant = record.tenant = "research";
  ticket.record = daemon::Encode(record);
  ticket.file = "own-123-1";
  ticket.since = static_cast<uint64_t>(time(nullptr));
  std::string sentence;
  {
    daemon::Suspended suspended;
    suspended.Load(folder);
    ASSERT_TRUE(suspended.Create(ticket.file, &sentence).valid()) << sentence;
    ASSERT_TRUE(suspended.Add(ticket, &sentence)) << sentence;
  }
  StartDaemon(authority_.Server({"127.0.0.1"}), "checkpoint_dir: " + folder + "\n" + kTenants);
  EXPECT_TRUE(Ask("alice", kSession, SuspendRequest::STATE).suspended()) << Log();
  ExpectOthersRefused(kSession);
  EXPECT_TRUE(Ask("alice", kSession, SuspendRequest::STATE).suspended()) << Log();
}

}  // namespace
}  // namespace longwire::identity
