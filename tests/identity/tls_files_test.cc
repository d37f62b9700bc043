// What is wrong with the files of TLS is said before anybody connects.
#include <gmock/gmock.h>

#include <fstream>

#include "tests/identity/papers.h"

namespace longwire::identity {
namespace {

using testing::HasSubstr;
using transport::TlsFiles;
using transport::TlsRole;

class TlsFilesTest : public testing::Test {
 protected:
  std::string Problem(const TlsFiles& files, TlsRole role = TlsRole::kClient) {
    std::string sentence;
    auto material = transport::LoadTls(files, role, &sentence);
    EXPECT_EQ(material.has_value(), sentence.empty());
    return sentence;
  }

  Folder folder_;
  Authority authority_{folder_.path()};
  TlsFiles good_ = authority_.Client("alice");
};

TEST_F(TlsFilesTest, GoodFilesSayWhoTheyAre) {
  std::string sentence;
  auto material =
      transport::LoadTls(good_, TlsRole::kClient, &sentence).value_or(transport::TlsMaterial{});
  EXPECT_EQ(sentence, "");
  EXPECT_EQ(material.own.common_name, "alice");
  EXPECT_EQ(material.own.issuer, "Test authority");
  EXPECT_EQ(Problem(authority_.Server({"host"}), TlsRole::kServer), "");
}

TEST_F(TlsFilesTest, AKeyThatOthersCanUse) {
  for (mode_t mode : {0644, 0640, 0601, 0660}) {
    chmod(good_.key.c_str(), mode);
    EXPECT_THAT(Problem(good_), HasSubstr("run: chmod 600 " + good_.key)) << std::oct << mode;
  }
  chmod(good_.key.c_str(), 0400);
  EXPECT_EQ(Problem(good_), "");
}

TEST_F(TlsFilesTest, DatesAreTold) {
  TlsFiles old = authority_.Client("old", Hours(-9, -3));
  EXPECT_THAT(Problem(old),
              HasSubstr("of 'old' expired on " +
                        transport::DateText(std::time(nullptr) - 3 * kHour).substr(0, 13)));
  EXPECT_THAT(Problem(authority_.Client("soon", Hours(3, 9))), HasSubstr("is not valid before 2"));
}

TEST_F(TlsFilesTest, APurposeOfItsOwn) {
  EXPECT_THAT(Problem(good_, TlsRole::kServer), HasSubstr("not meant for a server"));
  EXPECT_THAT(Problem(authority_.Server({"host"})), HasSubstr("not meant for a client"));
}

TEST_F(TlsFilesTest, FilesThatDoNotFit) {
  TlsFiles files = good_;
  files.key = authority_.Client("bob").key;
  EXPECT_THAT(Problem(files), HasSubstr("does not belong to the certificate " + good_.certificate));
  files = good_;
  files.key = good_.certificate;
  chmod(files.key.c_str(), 0600);
  EXPECT_THAT(Problem(files), HasSubstr("no private key"));
  files = good_;
  files.certificate = good_.key;
  EXPECT_THAT(Problem(files), HasSubstr("has no certificate in PEM"));
  files = good_;
  files.authority = good_.key;
  EXPECT_THAT(Problem(files), HasSubstr("has no certificate of an authority"));
}

TEST_F(TlsFilesTest, FilesThatAreNotThere) {
  TlsFiles files = good_;
  files.key = folder_ / "nowhere.key";
  EXPECT_THAT(Problem(files), HasSubstr("cannot read " + files.key + ": No such file"));
  files.key = folder_.path();
  chmod(files.key.c_str(), 0700);
  EXPECT_THAT(Problem(files), HasSubstr("is no file of certificates or keys"));
  EXPECT_THAT(Problem({good_.certificate, "", good_.authority}), HasSubstr("LONGWIRE_KEY"));
  EXPECT_THAT(Problem({good_.certificate, good_.key, ""}), HasSubstr("LONGWIRE_CA"));
  EXPECT_THAT(Problem({"", good_.key, ""}), HasSubstr("LONGWIRE_CERT"));
}

TEST_F(TlsFilesTest, AKeyWithAPassphraseAsksNobody) {
  std::string key = folder_ / "locked.key";
  ASSERT_EQ(Shell("openssl pkey -in " + good_.key + " -aes256 -passout pass:x -out " + key).status,
            0);
  TlsFiles files = good_;
  files.key = key;
  EXPECT_THAT(Problem(files), HasSubstr("or one with a passphrase"));
}

}  // namespace
}  // namespace longwire::identity
