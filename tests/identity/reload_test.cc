// A server's certificate is replaced while the server runs.
#include "tests/identity/papers.h"
#include "tests/transport/session_fixture.h"

namespace longwire::daemon {
namespace {

using identity::Hours;
using transport::TlsFiles;

class ReloadTest : public SessionTest {
 protected:
  void SetUp() override {
    server_ = authority_.Server({"127.0.0.1"});
    config_.mutable_tls()->set_certificate(server_.certificate);
    config_.mutable_tls()->set_key(server_.key);
    config_.mutable_tls()->set_authority(server_.authority);
    options_.identity = authority_.Client("alice");
    options_.idle = seconds(3);  // commands run while no program is there
    SessionTest::SetUp();
  }

  // Of the certificate that the server shows to a new connection.
  std::string Serial() {
    return identity::Shell("openssl s_client -connect " + config_.listen(0) + " -cert " +
                           options_.identity.certificate + " -key " + options_.identity.key +
                           " </dev/null 2>/dev/null | openssl x509 -noout -serial")
        .text;
  }
  static std::string SerialOf(const TlsFiles& files) {
    return identity::Shell("openssl x509 -noout -serial -in " + files.certificate).text;
  }

  identity::Folder papers_;
  identity::Authority authority_{papers_.path()};
  TlsFiles server_;
};

TEST_F(ReloadTest, NewConnectionsSeeTheNewCertificate) {
  Program before;
  ASSERT_TRUE(before.Open(options_.socket)) << before.reply.sentence;
  std::string old = SerialOf(server_);
  EXPECT_EQ(Serial(), old);
  authority_.Server({"127.0.0.1"});
  EXPECT_EQ(Serial(), old) << "read again without a reload";
  std::string sentence;
  ASSERT_TRUE(accept_->ReloadCredentials(config_, &sentence)) << sentence;
  EXPECT_EQ(Serial(), SerialOf(server_));
  EXPECT_NE(Serial(), old);
  EXPECT_TRUE(before.Echo("an older connection lives on"));
  Program after;
  EXPECT_TRUE(after.Open(options_.socket)) << after.reply.sentence;
}

TEST_F(ReloadTest, BadFilesChangeNothing) {
  Program before;
  ASSERT_TRUE(before.Open(options_.socket)) << before.reply.sentence;
  std::string old = SerialOf(server_);
  authority_.Server({"127.0.0.1"}, Hours(-9, -3));
  std::string sentence;
  EXPECT_FALSE(accept_->ReloadCredentials(config_, &sentence));
  EXPECT_NE(sentence.find("expired on"), std::string::npos) << sentence;
  EXPECT_EQ(Serial(), old);
  Program program;
  EXPECT_TRUE(program.Open(options_.socket)) << program.reply.sentence;
}

TEST_F(ReloadTest, AnotherAuthorityTurnsItsClientsAway) {
  identity::Authority other(papers_ / "other", "Other authority");
  TlsFiles next = other.Server({"127.0.0.1"});
  for (const auto& [from, to] : {std::pair{next.certificate, server_.certificate},
                                 {next.key, server_.key},
                                 {next.authority, server_.authority}}) {
    std::filesystem::copy_file(from, to, std::filesystem::copy_options::overwrite_existing);
  }
  std::string sentence;
  ASSERT_TRUE(accept_->ReloadCredentials(config_, &sentence)) << sentence;
  Program program;
  EXPECT_FALSE(program.Open(options_.socket));
  EXPECT_NE(program.reply.sentence.find("refused this client's certificate"), std::string::npos)
      << program.reply.sentence;
}

// A link keeps connections for the next program; a certificate that was replaced ends that.
TEST_F(ReloadTest, ALinkUsesARenewedCertificate) {
  {
    Program program;
    ASSERT_TRUE(program.Open(options_.socket)) << program.reply.sentence;
  }
  ASSERT_TRUE(NothingLeft());
  authority_.Client("bob", Hours(-1, 9), "alice");
  Program program;
  ASSERT_TRUE(program.Open(options_.socket)) << program.reply.sentence;
  ASSERT_EQ(table_->List().size(), 1u);
  EXPECT_EQ(table_->List()[0]->client().peer.identity, "bob");
}

TEST_F(ReloadTest, TlsIsNotSwitchedOff) {
  config::Config without = config_;
  without.clear_tls();
  std::string sentence;
  EXPECT_FALSE(accept_->ReloadCredentials(without, &sentence));
  EXPECT_NE(sentence.find("restart it"), std::string::npos) << sentence;
}

}  // namespace
}  // namespace longwire::daemon
