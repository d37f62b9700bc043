// Tickets: a file is good once, also for the next daemon, and what is half written is nothing.
#include "server/daemon/checkpoints/suspended.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace longwire::daemon {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

class SuspendedTest : public testing::Test {
 protected:
  SuspendedTest() {
    char name[] = "/tmp/longwire-suspended-XXXXXX";
    folder_ = mkdtemp(name);
    table_.Load(folder_);
  }
  ~SuspendedTest() override { std::filesystem::remove_all(folder_); }

  Ticket Make(uint64_t session, const std::string& file) {
    Ticket ticket;
    ticket.numbers = {session - 1, session};
    ticket.file = file;
    ticket.salt = "salt of " + file;
    ticket.since = static_cast<uint64_t>(time(nullptr));
    return ticket;
  }
  void Add(uint64_t session, const std::string& file) {
    ASSERT_TRUE(table_.Create(file, &sentence_).valid()) << sentence_;
    ASSERT_TRUE(table_.Add(Make(session, file), &sentence_)) << sentence_;
  }
  bool Exists(const std::string& name) { return std::filesystem::exists(folder_ + "/" + name); }

  std::string folder_, sentence_;
  Suspended table_;
};

TEST_F(SuspendedTest, TheNextDaemonFindsThem) {
  Add(5, "one");
  Add(9, "two");
  Suspended next;
  next.Load(folder_);
  EXPECT_EQ(next.List().size(), 2u);
  ASSERT_TRUE(next.Find(4).has_value());
  EXPECT_EQ(next.Find(4)->session(), 5u);
  EXPECT_EQ(next.Find(9)->file, "two");
  EXPECT_FALSE(next.Find(6).has_value());
}

TEST_F(SuspendedTest, OfTwoWhoRestoreOneWins) {
  Add(5, "one");
  EXPECT_TRUE(table_.Claim("salt of one", &sentence_).has_value());
  EXPECT_FALSE(table_.Claim("salt of one", &sentence_).has_value());
  EXPECT_THAT(sentence_, HasSubstr("being restored already"));
  EXPECT_FALSE(table_.Claim(5));
  table_.GiveBack(5);
  EXPECT_TRUE(table_.Claim(5));
}

TEST_F(SuspendedTest, AFileWhoseSessionGoesOnIsVoid) {
  Add(5, "one");
  ASSERT_TRUE(table_.Claim(5));
  ASSERT_TRUE(table_.Remove(5, &sentence_));
  EXPECT_FALSE(Exists("one"));
  EXPECT_FALSE(table_.Claim("salt of one", &sentence_).has_value());
  EXPECT_THAT(sentence_, HasSubstr("void"));
  Suspended next;
  next.Load(folder_);
  EXPECT_TRUE(next.List().empty());
}

TEST_F(SuspendedTest, NoOtherFileIsTouched) {
  std::ofstream(folder_ + "/there") << "precious";
  EXPECT_FALSE(table_.Create("there", &sentence_).valid());
  EXPECT_THAT(sentence_, HasSubstr("is there already"));
  for (const char* name : {"", "../up", "/etc/passwd", ".hidden", "a/b", "-x", "a b", "x.part"}) {
    EXPECT_FALSE(table_.Create(name, &sentence_).valid()) << name;
    EXPECT_THAT(sentence_, HasSubstr("no name for a file"));
  }
  // One that appears while the session is written.
  ASSERT_TRUE(table_.Create("late", &sentence_).valid());
  std::ofstream(folder_ + "/late") << "precious";
  EXPECT_FALSE(table_.Add(Make(5, "late"), &sentence_));
  EXPECT_EQ(std::filesystem::file_size(folder_ + "/late"), 8u);
}

TEST_F(SuspendedTest, OnlyItsUserReadsTheFile) {
  Add(5, "one");
  struct stat about {};
  ASSERT_EQ(stat((folder_ + "/one").c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600u);
}

TEST_F(SuspendedTest, WhatIsHalfWrittenIsNothing) {
  ASSERT_TRUE(table_.Create("half", &sentence_).valid());
  ASSERT_TRUE(Exists("half.part"));
  std::ofstream(folder_ + "/.suspended/7.part") << "half";
  Suspended next;
  next.Load(folder_);
  EXPECT_TRUE(next.List().empty());
  EXPECT_FALSE(Exists("half.part"));
  EXPECT_FALSE(Exists(".suspended/7.part"));
}

TEST_F(SuspendedTest, ADamagedTicketIsNoTicket) {
  Add(5, "one");
  const std::string path = folder_ + "/.suspended/5";
  const auto bytes = std::filesystem::file_size(path);
  for (uintmax_t at = 0; at < bytes; ++at) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(at));
    const char good = static_cast<char>(file.get());
    file.seekp(static_cast<std::streamoff>(at));
    file.put(static_cast<char>(good ^ 1));
    file.flush();
    Suspended next;
    next.Load(folder_);
    EXPECT_TRUE(next.List().empty()) << at;
    file.seekp(static_cast<std::streamoff>(at));
    file.put(good);
  }
  Suspended next;
  next.Load(folder_);
  EXPECT_EQ(next.List().size(), 1u);
}

TEST_F(SuspendedTest, TheirTimeIsCounted) {
  Add(5, "one");
  bool any = false;
  EXPECT_TRUE(table_.Late(milliseconds(60'000), &any).empty());
  EXPECT_TRUE(any);
  EXPECT_EQ(table_.Late(milliseconds(0), &any), std::vector<uint64_t>{5});
  EXPECT_FALSE(any);
  ASSERT_TRUE(table_.Claim(5));  // being restored
  EXPECT_TRUE(table_.Late(milliseconds(0), &any).empty());
  EXPECT_TRUE(any);
  Ticket ahead;
  ahead.since = static_cast<uint64_t>(time(nullptr)) + 1000;  // the clock was put back
  EXPECT_EQ(RestOf(ahead, milliseconds(50)), milliseconds(50));
}

TEST_F(SuspendedTest, WithoutAFolderNothingIsSuspended) {
  Suspended none;
  none.Load("");
  EXPECT_FALSE(none.Create("one", &sentence_).valid());
  EXPECT_THAT(sentence_, HasSubstr("checkpoint_dir"));
}

}  // namespace
}  // namespace longwire::daemon
