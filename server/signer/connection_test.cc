// Client and signer over loopback: who gets an answer, and who cannot keep others from one.
#include "server/signer/connection.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <thread>

#include "link/certificates/signer_client.h"
#include "link/certificates/signing_request.h"
#include "link/certificates/tcp.h"
#include "server/signer/service.h"
#include "wire/socket.h"

namespace longwire::signer {
namespace {

using certificates::Answer;
using certificates::Issued;
using certificates::Request;
using certificates::SignerTrust;
using testing::HasSubstr;

constexpr std::chrono::seconds kPatience{30};

// A signer of an authority of its own that serves on a thread.
class RunningSigner {
 public:
  explicit RunningSigner(const std::string& folder) : socket_(folder + "/signer") {
    std::string sentence;
    authority_ =
        *certificates::MakeAuthority("Test authority", certificates::ValidFor(10), &sentence);
    signer_ = std::make_unique<Signer>(Settings{authority_, 10, "", "", ""},
                                       [](bool, const std::string&) {});
    service_ = std::make_unique<Service>(*signer_, authority_, "");
    EXPECT_TRUE(signer_->Start(&sentence) && service_->Open({{"127.0.0.1", 0}}, socket_, &sentence))
        << sentence;
    thread_ = std::thread([this] {
      while (!stopping_.load()) service_->RunOnce();
    });
  }
  ~RunningSigner() {
    stopping_.store(true);
    wire::ConnectLocal(socket_);
    thread_.join();
  }

  transport::Address address() const { return {"127.0.0.1", service_->port()}; }
  const Issued& authority() const { return authority_; }
  wire::Digest fingerprint() const { return *certificates::Fingerprint(authority_.certificate); }

  certificates::Secret Invite(const std::string& name) {
    wire::Descriptor socket = wire::ConnectLocal(socket_);
    std::string packed = certificates::Pack(certificates::InviteRequest{name, "", 60});
    wire::SendMessage(socket.get(), std::as_bytes(std::span(packed)));
    certificates::InviteAnswer answer;
    auto message = wire::ReceiveMessage(socket.get(), kPatience);
    EXPECT_TRUE(message && certificates::Unpack(message->bytes, &answer));
    EXPECT_EQ(answer.problem, "");
    return answer.secret;
  }

 private:
  const std::string socket_;
  Issued authority_;
  std::unique_ptr<Signer> signer_;
  std::unique_ptr<Service> service_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

class ConnectionTest : public testing::Test {
 protected:
  ConnectionTest() {
    char path[] = "/tmp/longwire-signer-XXXXXX";
    if (mkdtemp(path) != nullptr) folder_ = path;
    signer_ = std::make_unique<RunningSigner>(folder_);
    key_ = certificates::NewKey(&sentence_);
    request_.signing_request = certificates::MakeSigningRequest(key_, &sentence_).value_or("");
  }
  ~ConnectionTest() override {
    signer_.reset();
    std::filesystem::remove_all(folder_);
  }

  std::optional<Answer> Join(const certificates::Secret& secret, const wire::Digest& authority) {
    SignerTrust trust;
    trust.fingerprint = authority;
    request_.secret = secret;
    return certificates::AskSigner(signer_->address(), trust, request_, kPatience, &sentence_);
  }
  std::optional<Answer> Renew(const Issued& own) {
    SignerTrust trust;
    trust.authority = signer_->authority().certificate;
    trust.certificate = own.certificate;
    trust.key = own.key;
    Request request = request_;
    request.kind = Request::Kind::kRenew;
    return certificates::AskSigner(signer_->address(), trust, request, kPatience, &sentence_);
  }
  // A connection from 127.0.0.N.
  wire::Descriptor ConnectFrom(int n) {
    wire::Descriptor connection(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in own{}, peer{};
    own.sin_family = peer.sin_family = AF_INET;
    own.sin_addr.s_addr = htonl(0x7f000000 + static_cast<uint32_t>(n));
    peer.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    peer.sin_port = htons(signer_->address().port);
    EXPECT_EQ(bind(connection.get(), reinterpret_cast<sockaddr*>(&own), sizeof(own)), 0);
    EXPECT_EQ(connect(connection.get(), reinterpret_cast<sockaddr*>(&peer), sizeof(peer)), 0);
    return connection;
  }

  std::string folder_;
  std::unique_ptr<RunningSigner> signer_;
  std::string key_;
  Request request_;
  std::string sentence_;
};

TEST_F(ConnectionTest, AnInvitedClientJoinsAndRenews) {
  auto answer = Join(signer_->Invite("alice"), signer_->fingerprint());
  ASSERT_TRUE(answer) << sentence_;
  ASSERT_EQ(answer->problem, "");
  EXPECT_EQ(certificates::ProblemOf(*answer, signer_->fingerprint(), key_), "");
  auto renewed = Renew({answer->certificate, key_});
  ASSERT_TRUE(renewed) << sentence_;
  ASSERT_EQ(renewed->problem, "");
  EXPECT_NE(renewed->certificate, answer->certificate);
}

TEST_F(ConnectionTest, ASignerOfAnotherAuthorityGetsNoSecret) {
  wire::Digest other = signer_->fingerprint();
  other[0] ^= std::byte{1};
  auto secret = signer_->Invite("alice");
  EXPECT_FALSE(Join(secret, other));
  EXPECT_THAT(sentence_, HasSubstr("of another authority"));
  EXPECT_THAT(sentence_, HasSubstr("nothing was sent"));
  auto answer = Join(secret, signer_->fingerprint());
  ASSERT_TRUE(answer) << sentence_;
  EXPECT_EQ(answer->problem, "");
}

TEST_F(ConnectionTest, ACertificateOfAnotherAuthorityIsNotRenewed) {
  auto other =
      certificates::MakeAuthority("Test authority", certificates::ValidFor(10), &sentence_);
  auto own = certificates::IssueClient(*other, "alice", certificates::ValidFor(1), &sentence_);
  auto answer = Renew(*own);
  ASSERT_TRUE(answer) << sentence_;
  EXPECT_THAT(answer->problem, HasSubstr("certificate is refused"));
  EXPECT_EQ(answer->certificate, "");
}

TEST_F(ConnectionTest, AnExpiredCertificateIsNotRenewedAndThatIsSaid) {
  std::time_t now = std::time(nullptr);
  auto own = certificates::IssueClient(signer_->authority(), "alice", {now - 7200, now - 3600},
                                       &sentence_);
  auto answer = Renew(*own);
  ASSERT_TRUE(answer) << sentence_;
  EXPECT_THAT(answer->problem, HasSubstr("expired on"));
}

// Whether the other end closes without a byte.
bool IsClosed(const wire::Descriptor& socket, std::chrono::milliseconds patience) {
  char byte;
  return transport::AwaitSocket(socket.get(), POLLIN,
                                std::chrono::steady_clock::now() + patience) &&
         recv(socket.get(), &byte, 1, MSG_DONTWAIT) <= 0;
}

TEST_F(ConnectionTest, OneAddressHasAFewConnections) {
  std::vector<wire::Descriptor> silent;
  for (int i = 0; i < 8; ++i) silent.push_back(ConnectFrom(2));
  EXPECT_TRUE(IsClosed(ConnectFrom(2), kPatience));
  EXPECT_FALSE(IsClosed(silent.front(), std::chrono::milliseconds(0)));
  auto answer = Join(signer_->Invite("alice"), signer_->fingerprint());
  ASSERT_TRUE(answer) << sentence_;
  EXPECT_EQ(answer->problem, "");
}

TEST_F(ConnectionTest, GarbageEndsItsConnectionOnly) {
  for (const std::string& garbage :
       {std::string("GET / HTTP/1.1\r\n\r\n"), std::string(1 << 16, '\xff'),
        std::string("\x16\x03\x01\x40\x00", 5) + std::string(1 << 14, '\0')}) {
    wire::Descriptor connection = ConnectFrom(3);
    send(connection.get(), garbage.data(), garbage.size(), MSG_NOSIGNAL);
    shutdown(connection.get(), SHUT_WR);
    char bytes[4096];
    while (recv(connection.get(), bytes, sizeof(bytes), 0) > 0) {
    }
  }
  auto answer = Join(signer_->Invite("alice"), signer_->fingerprint());
  ASSERT_TRUE(answer) << sentence_;
  EXPECT_EQ(answer->problem, "");
}

TEST_F(ConnectionTest, ARequestHasItsSize) {
  request_.signing_request.assign(certificates::kMaxRequestBytes, 'x');
  auto answer = Join({}, signer_->fingerprint());
  ASSERT_TRUE(answer) << sentence_;
  EXPECT_THAT(answer->problem, HasSubstr("bytes, and its length in front"));
}

}  // namespace
}  // namespace longwire::signer
