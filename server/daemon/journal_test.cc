// What goes to the journal and when, up to the call that sends it; tests/service finds it there.
#include "server/daemon/journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "wire/socket.h"

namespace longwire::daemon {
namespace {

using testing::ElementsAre;
using testing::MatchesRegex;
using transport::Log;
using transport::LogLevel;
using transport::LogSubject;

TEST(JournalFields, OfALineAboutASession) {
  EXPECT_THAT(
      JournalFields(LogLevel::kInfo, {7001, "research", "192.0.2.7:51234"}, "session 7001: opened"),
      ElementsAre("MESSAGE=session 7001: opened", "PRIORITY=6", "SYSLOG_IDENTIFIER=longwired",
                  "LONGWIRE_SESSION=7001", "LONGWIRE_TENANT=research",
                  "LONGWIRE_PEER=192.0.2.7:51234"));
}

TEST(JournalFields, WhatIsNotKnownIsLeftOut) {
  EXPECT_THAT(JournalFields(LogLevel::kError, {}, "no worker"),
              ElementsAre("MESSAGE=no worker", "PRIORITY=3", "SYSLOG_IDENTIFIER=longwired"));
  EXPECT_THAT(JournalFields(LogLevel::kWarning, {.peer = "uid 1000"}, "refused"),
              ElementsAre("MESSAGE=refused", "PRIORITY=4", "SYSLOG_IDENTIFIER=longwired",
                          "LONGWIRE_PEER=uid 1000"));
  EXPECT_EQ(JournalFields(LogLevel::kDebug, {}, "")[1], "PRIORITY=7");
}

TEST(JournalFields, OfARecord) {
  const transport::LogFields more = {{"GPU_SECONDS", "1.5"}, {"EMPTY", ""}, {"PROGRAM", "a\nb"}};
  EXPECT_THAT(
      JournalFields(LogLevel::kInfo, {.session = 1, .fields = &more}, "used"),
      ElementsAre("MESSAGE=used", "PRIORITY=6", "SYSLOG_IDENTIFIER=longwired", "LONGWIRE_SESSION=1",
                  "LONGWIRE_GPU_SECONDS=1.5", "LONGWIRE_PROGRAM=a?b"));
}

TEST(JournalStream, IsTheFileThatTheVariableNames) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  wire::Descriptor reading(ends[0]), writing(ends[1]);
  struct stat file {};
  ASSERT_EQ(fstat(writing.get(), &file), 0);
  std::string name = std::to_string(file.st_dev) + ":" + std::to_string(file.st_ino);
  EXPECT_TRUE(IsJournalStream(writing.get(), name.c_str()));
  EXPECT_FALSE(IsJournalStream(writing.get(), nullptr));
  EXPECT_FALSE(IsJournalStream(writing.get(), ""));
  EXPECT_FALSE(IsJournalStream(writing.get(), (name + "1").c_str()));
  EXPECT_FALSE(IsJournalStream(writing.get(), ("1" + name).c_str()));
  EXPECT_FALSE(IsJournalStream(STDIN_FILENO, name.c_str())) << "another file";
  EXPECT_FALSE(IsJournalStream(-1, name.c_str()));
}

// What a test's sink was given last.
LogSubject g_subject;
std::string g_message;
bool g_takes = true;

bool Take(LogLevel, const LogSubject& subject, const std::string& message) {
  g_subject = subject;
  g_message = message;
  return g_takes;
}

class LogSinkTest : public testing::Test {
 protected:
  void SetUp() override {
    transport::SetLogSink(Take);
    transport::SetLogLevel(LogLevel::kInfo);
    g_message.clear();
    g_takes = true;
  }
  void TearDown() override { transport::SetLogSink(nullptr); }

  static std::string Written() {
    testing::internal::CaptureStderr();
    Log(LogLevel::kWarning, {7001, "research", "here"}, "ended:\nforged");
    return testing::internal::GetCapturedStderr();
  }
  static constexpr const char* kLine =
      "....-..-..T..:..:..\\....Z warning session 7001: ended:.forged\n";
};

TEST_F(LogSinkTest, TakesLinesInPlaceOfStandardError) {
  EXPECT_EQ(Written(), "");
  EXPECT_EQ(g_message, "session 7001: ended:?forged");
  EXPECT_EQ(g_subject.session, 7001u);
  EXPECT_EQ(g_subject.tenant, "research");
  EXPECT_EQ(g_subject.peer, "here");
  g_message.clear();
  Log(LogLevel::kDebug, "not at this level");
  EXPECT_EQ(g_message, "");
}

// Counts what it takes; a line about what was left out is about nobody.
size_t g_records = 0, g_lines = 0;
bool Count(LogLevel, const LogSubject& subject, const std::string&) {
  if (subject.session != 0) ++(subject.fields != nullptr ? g_records : g_lines);
  return true;
}

TEST_F(LogSinkTest, ARecordIsNeverLeftOut) {
  transport::SetLogSink(Count);
  transport::SetLogLimit(1);
  const transport::LogFields fields;
  for (int i = 0; i < 100; ++i) {
    Log(LogLevel::kInfo, {.session = 7001}, "a line");
    Log(LogLevel::kInfo, {.session = 7001, .fields = &fields}, "a record");
  }
  transport::SetLogLimit(0);
  EXPECT_EQ(g_records, 100u);
  EXPECT_LT(g_lines, 20u);
}

TEST_F(LogSinkTest, ALineItCannotTakeIsWritten) {
  g_takes = false;
  EXPECT_THAT(Written(), MatchesRegex(kLine));
}

TEST_F(LogSinkTest, WithoutOneLinesArePlain) {
  transport::SetLogSink(nullptr);
  EXPECT_THAT(Written(), MatchesRegex(kLine));
  EXPECT_EQ(g_message, "");
}

TEST_F(LogSinkTest, TheJournalIsNoneWhereStandardErrorIsAnotherFile) {
  transport::SetLogSink(nullptr);
  setenv("JOURNAL_STREAM", "1:1", 1);
  LogToJournal();
  unsetenv("JOURNAL_STREAM");
  EXPECT_THAT(Written(), MatchesRegex(kLine));
}

}  // namespace
}  // namespace longwire::daemon
