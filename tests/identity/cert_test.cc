// longwire cert: what it makes is what OpenSSL expects, and it never loses a key.
#include <gmock/gmock.h>

#include "tests/identity/papers.h"

namespace longwire::identity {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

class CertTest : public testing::Test {
 protected:
  Said Cert(const std::string& arguments) {
    return Shell(LONGWIRE " cert " + arguments + " --dir " + folder_.path());
  }
  Said OpenSsl(const std::string& arguments) {
    return Shell("cd " + folder_.path() + " && openssl " + arguments);
  }
  void MakeAll() {
    ASSERT_EQ(Cert("init").status, 0);
    ASSERT_EQ(Cert("server --name gpu.example.org,127.0.0.1,::1").status, 0);
    ASSERT_EQ(Cert("client --name alice@example.org --days 3").status, 0);
  }
  static mode_t Mode(const std::string& path) {
    struct stat status {};
    return stat(path.c_str(), &status) == 0 ? status.st_mode & 0777 : 0;
  }
  std::string Text(const std::string& name) {
    std::string sentence;
    return certificates::ReadText(folder_ / name, &sentence).value_or(sentence);
  }

  Folder folder_;
};

TEST_F(CertTest, TheAuthorityMaySignAndNothingElse) {
  MakeAll();
  std::string text = OpenSsl("x509 -in ca.crt -noout -text").text;
  EXPECT_THAT(text, ContainsRegex("Basic Constraints: critical\n *CA:TRUE, pathlen:0"));
  EXPECT_THAT(text, ContainsRegex("Key Usage: critical\n *Certificate Sign, CRL Sign"));
  EXPECT_THAT(text, HasSubstr("prime256v1"));
  EXPECT_EQ(OpenSsl("verify -CAfile ca.crt ca.crt").status, 0);
}

TEST_F(CertTest, AServersCertificateIsForItsNames) {
  MakeAll();
  std::string text = OpenSsl("x509 -in gpu.example.org.crt -noout -text").text;
  EXPECT_THAT(text, HasSubstr("DNS:gpu.example.org, IP Address:127.0.0.1, IP Address:0:0:0:0:0:"));
  EXPECT_THAT(text, ContainsRegex("Basic Constraints: critical\n *CA:FALSE"));
  EXPECT_THAT(text, ContainsRegex("Key Usage: critical\n *Digital Signature\n"));
  std::string verify = "verify -CAfile ca.crt -x509_strict ";
  for (const char* good : {"-verify_hostname gpu.example.org", "-verify_ip 127.0.0.1",
                           "-verify_ip ::1", "-purpose sslserver", "-purpose sslclient"}) {
    Said said = OpenSsl(verify + good + " gpu.example.org.crt");
    EXPECT_EQ(said.status, 0) << good << said.text;
  }
  for (const char* bad : {"-verify_hostname other.example.org", "-verify_ip 127.0.0.2"}) {
    EXPECT_NE(OpenSsl(verify + bad + " gpu.example.org.crt").status, 0) << bad;
  }
}

TEST_F(CertTest, AClientsCertificateIsForAClient) {
  MakeAll();
  std::string verify = "verify -CAfile ca.crt -x509_strict ";
  EXPECT_EQ(OpenSsl(verify + "-purpose sslclient alice@example.org.crt").status, 0);
  EXPECT_NE(OpenSsl(verify + "-purpose sslserver alice@example.org.crt").status, 0);
  EXPECT_THAT(OpenSsl("x509 -in alice@example.org.crt -noout -subject").text,
              HasSubstr("CN = alice@example.org"));
  EXPECT_EQ(OpenSsl("x509 -in alice@example.org.crt -noout -checkend 255000").status, 0);
  EXPECT_EQ(OpenSsl("x509 -in alice@example.org.crt -noout -checkend 260000").status, 1);
}

TEST_F(CertTest, NothingIsValidForLongerThanItsAuthority) {
  ASSERT_EQ(Cert("init --days 2").status, 0);
  ASSERT_EQ(Cert("client --name bob --days 100").status, 0);
  EXPECT_EQ(OpenSsl("x509 -in bob.crt -noout -checkend 180000").status, 1);
}

TEST_F(CertTest, KeysAreForTheirOwnerAndFitTheirCertificates) {
  MakeAll();
  for (const char* name : {"ca", "gpu.example.org", "alice@example.org"}) {
    EXPECT_EQ(Mode(folder_ / (std::string(name) + ".key")), 0600u) << name;
    EXPECT_EQ(OpenSsl(std::string("x509 -in ") + name + ".crt -noout -pubkey").text,
              OpenSsl(std::string("pkey -in ") + name + ".key -pubout").text);
  }
}

TEST_F(CertTest, FilesAreReplacedOnlyByForce) {
  MakeAll();
  std::string key = Text("ca.key"), alice = Text("alice@example.org.key");
  for (const char* again : {"init", "client --name alice@example.org"}) {
    Said said = Cert(again);
    EXPECT_EQ(said.status, 1);
    EXPECT_THAT(said.text, HasSubstr("is there already; --force replaces it"));
  }
  EXPECT_EQ(Text("ca.key"), key);
  EXPECT_EQ(Text("alice@example.org.key"), alice);
  ASSERT_EQ(Cert("client --name alice@example.org --force").status, 0);
  EXPECT_NE(Text("alice@example.org.key"), alice);
  EXPECT_EQ(Mode(folder_ / "alice@example.org.key"), 0600u);
  EXPECT_EQ(OpenSsl("verify -CAfile ca.crt alice@example.org.crt").status, 0);
}

TEST_F(CertTest, NamesThatWouldMeanSomethingElseAreRefused) {
  MakeAll();
  for (const char* name : {"loopback", "uid:0", "../escape", "''", "ca", "'a b'", ".hidden"}) {
    EXPECT_NE(Cert(std::string("client --name ") + name).status, 0) << name;
  }
  for (const char* name : {"host:7411", "a,,b", "'*'", "-x"}) {
    EXPECT_NE(Cert(std::string("server --name ") + name).status, 0) << name;
  }
  EXPECT_THAT(Cert("server --name host:7411").text, HasSubstr("takes no port"));
  EXPECT_THAT(Cert("client").text, HasSubstr("--name is missing"));
  EXPECT_THAT(Cert("client --name x --days 0").text, HasSubstr("--days expects a number"));
}

TEST_F(CertTest, AnAuthoritysKeyThatOthersCanReadIsNotUsed) {
  MakeAll();
  chmod((folder_ / "ca.key").c_str(), 0640);
  Said said = Cert("client --name bob");
  EXPECT_EQ(said.status, 1);
  EXPECT_THAT(said.text, HasSubstr("chmod 600 " + (folder_ / "ca.key")));
}

TEST_F(CertTest, ShowSaysWhatIsInAFile) {
  MakeAll();
  Said said = Shell(LONGWIRE " cert show " + (folder_ / "gpu.example.org.crt"));
  EXPECT_EQ(said.status, 0);
  EXPECT_THAT(said.text, ContainsRegex("name +gpu.example.org\n"));
  EXPECT_THAT(said.text, ContainsRegex("reached by +127.0.0.1\n"));
  EXPECT_THAT(said.text, ContainsRegex("for +server and client\n"));
  EXPECT_THAT(said.text, ContainsRegex("365 days left|364 days left"));
  EXPECT_THAT(Shell(LONGWIRE " cert show " + (folder_ / "ca.crt")).text,
              ContainsRegex("for +signs certificates"));
  Authority authority(folder_ / "other");
  std::string old = authority.Client("old", Hours(-9, -3)).certificate;
  EXPECT_THAT(Shell(LONGWIRE " cert show " + old).text, HasSubstr("(expired)"));
  said = Shell(LONGWIRE " cert show " + (folder_ / "ca.key"));
  EXPECT_EQ(said.status, 1);
  EXPECT_THAT(said.text, HasSubstr("has no certificate in PEM"));
}

}  // namespace
}  // namespace longwire::identity
