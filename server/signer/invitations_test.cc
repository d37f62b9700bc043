// An invitation is good once, for its time, for its secret, also across a restart.
#include "server/signer/invitations.h"

#include <gmock/gmock.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace longwire::signer {
namespace {

using certificates::Secret;
using testing::HasSubstr;
using Outcome = Invitations::Outcome;

constexpr std::time_t kNow = 1'800'000'000;
constexpr std::time_t kUntil = kNow + 3600;

class InvitationsTest : public testing::Test {
 protected:
  InvitationsTest() {
    char path[] = "/tmp/longwire-invitations-XXXXXX";
    if (mkdtemp(path) != nullptr) folder_ = path;
  }
  ~InvitationsTest() override { std::filesystem::remove_all(folder_); }

  Secret Invite(Invitations& invitations, const std::string& name = "alice") {
    auto secret = invitations.Add(name, "gpu:7411", kNow, kUntil, &sentence_);
    EXPECT_TRUE(secret) << sentence_;
    return secret.value_or(Secret{});
  }
  Outcome Use(Invitations& invitations, const Secret& secret, std::time_t now = kNow) {
    return invitations.Use(secret, now, &used_, &sentence_);
  }
  static Secret Wrong(Secret secret) {
    secret.back() ^= std::byte{1};
    return secret;
  }
  std::string file() const { return folder_ + "/invitations"; }

  std::string folder_;
  std::string sentence_;
  Invitations::Used used_;
};

TEST_F(InvitationsTest, ItIsGoodOnce) {
  Invitations invitations("");
  Secret secret = Invite(invitations);
  EXPECT_EQ(Use(invitations, secret), Outcome::kGood) << sentence_;
  EXPECT_EQ(used_.name, "alice");
  EXPECT_EQ(used_.server, "gpu:7411");
  EXPECT_EQ(Use(invitations, secret), Outcome::kWrong);
  EXPECT_THAT(sentence_, HasSubstr("used already"));
}

TEST_F(InvitationsTest, AWrongSecretIsRefused) {
  Invitations invitations("");
  Secret secret = Invite(invitations);
  EXPECT_EQ(Use(invitations, Secret{}), Outcome::kWrong);
  for (int i = 1; i < kMaxWrongSecrets; ++i) {
    EXPECT_EQ(Use(invitations, Wrong(secret)), Outcome::kWrong);
  }
  EXPECT_EQ(Use(invitations, secret), Outcome::kGood) << sentence_;
}

TEST_F(InvitationsTest, ItEndsAfterAFewWrongSecrets) {
  Invitations invitations("");
  Secret secret = Invite(invitations), other = Invite(invitations, "bob");
  for (int i = 0; i < kMaxWrongSecrets; ++i) Use(invitations, Wrong(secret));
  EXPECT_EQ(Use(invitations, secret), Outcome::kWrong);
  EXPECT_EQ(Use(invitations, other), Outcome::kGood) << sentence_;
}

TEST_F(InvitationsTest, ItExpires) {
  Invitations invitations("");
  Secret secret = Invite(invitations);
  EXPECT_EQ(Use(invitations, secret, kUntil + 1), Outcome::kExpired);
  EXPECT_THAT(sentence_, HasSubstr("expired on"));
  EXPECT_EQ(Use(invitations, secret, kUntil), Outcome::kGood);
}

TEST_F(InvitationsTest, TheirNumberIsBounded) {
  Invitations invitations("");
  for (size_t i = 0; i < kMaxInvitations; ++i) Invite(invitations);
  EXPECT_FALSE(invitations.Add("alice", "", kNow, kUntil, &sentence_));
  EXPECT_THAT(sentence_, HasSubstr("which is the limit"));
  // Those that have expired do not count.
  EXPECT_TRUE(invitations.Add("alice", "", kUntil + 1, kUntil + 2, &sentence_)) << sentence_;
}

TEST_F(InvitationsTest, NamesAreThoseOfIdentities) {
  Invitations invitations("");
  for (const char* bad : {"", "loopback", "uid:0", "a b", "../x", "a\nb", "-x"}) {
    EXPECT_FALSE(invitations.Add(bad, "", kNow, kUntil, &sentence_)) << bad;
    EXPECT_THAT(sentence_, HasSubstr("is no name for an identity"));
  }
  EXPECT_EQ(invitations.size(), 0u);
}

TEST_F(InvitationsTest, ARestartKeepsThem) {
  Secret good, used, wrong;
  {
    Invitations before(file());
    ASSERT_TRUE(before.Load(&sentence_)) << sentence_;
    good = Invite(before);
    used = Invite(before, "bob");
    wrong = Invite(before, "carol");
    EXPECT_EQ(Use(before, used), Outcome::kGood);
    for (int i = 1; i < kMaxWrongSecrets; ++i) Use(before, Wrong(wrong));
  }
  Invitations after(file());
  ASSERT_TRUE(after.Load(&sentence_)) << sentence_;
  EXPECT_EQ(Use(after, used), Outcome::kWrong);
  EXPECT_EQ(Use(after, Wrong(wrong)), Outcome::kWrong);
  EXPECT_EQ(Use(after, wrong), Outcome::kWrong) << "the count of wrong secrets was forgotten";
  EXPECT_EQ(Use(after, good), Outcome::kGood) << sentence_;
  EXPECT_EQ(used_.name, "alice");
}

TEST_F(InvitationsTest, TheFileHasNoSecretAndIsItsOwners) {
  Invitations invitations(file());
  Secret secret = Invite(invitations);
  std::ifstream stream(file());
  std::string text{std::istreambuf_iterator<char>(stream), {}};
  EXPECT_THAT(text, HasSubstr("alice"));
  EXPECT_THAT(text, testing::Not(HasSubstr(wire::Hexadecimal(secret).substr(16))));
  struct stat status {};
  ASSERT_EQ(stat(file().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(InvitationsTest, ADamagedFileIsRefusedWithASentence) {
  {
    Invitations before(file());
    Invite(before);
  }
  std::filesystem::resize_file(file(), std::filesystem::file_size(file()) - 5);
  Invitations after(file());
  EXPECT_FALSE(after.Load(&sentence_));
  EXPECT_THAT(sentence_, HasSubstr("is damaged; remove it"));
}

TEST_F(InvitationsTest, WithoutAPlaceForItsStateNothingIsGood) {
  Invitations invitations(folder_ + "/missing/invitations");
  EXPECT_FALSE(invitations.Add("alice", "", kNow, kUntil, &sentence_));
  std::filesystem::create_directory(folder_ + "/missing");
  Secret secret = Invite(invitations);
  std::filesystem::remove_all(folder_ + "/missing");
  EXPECT_EQ(Use(invitations, secret), Outcome::kFailed);
  EXPECT_THAT(sentence_, HasSubstr("signs nothing"));
}

}  // namespace
}  // namespace longwire::signer
