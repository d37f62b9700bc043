#include "base/reason.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <new>
#include <system_error>
#include <thread>

namespace longwire::base {
namespace {

TEST(Reason, NamesCauseAndRemedy) {
  EXPECT_NE(Reason(EMFILE).find("ulimit -n"), std::string::npos);
  EXPECT_NE(Reason(ENOSPC).find("No space left on device; free some"), std::string::npos);
  EXPECT_EQ(Reason(EINVAL), "Invalid argument");
  EXPECT_NE(ReasonOfNoThread(EAGAIN).find("TasksMax="), std::string::npos);
  EXPECT_EQ(ReasonOfNoThread(ENOMEM), Reason(ENOMEM));
}

TEST(ReasonDeathTest, WhatIsNotCaughtEndsWithASentence) {
  auto end = [](auto problem) {
    SayWhyTerminated("longwire-test");
    std::thread([problem] { throw problem; }).join();
  };
  EXPECT_EXIT(end(std::system_error(EAGAIN, std::generic_category())),
              testing::ExitedWithCode(kSystemRefused), "longwire-test: ends.*ulimit -u");
  EXPECT_EXIT(end(std::bad_alloc()), testing::ExitedWithCode(kSystemRefused), "memory");
  EXPECT_EXIT(end(1), testing::KilledBySignal(SIGABRT), "");
}

}  // namespace
}  // namespace longwire::base
