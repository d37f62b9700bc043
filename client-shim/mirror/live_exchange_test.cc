#include "client-shim/mirror/live_exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <thread>

#include "client-shim/support/own_memory.h"
#include "client-shim/testing/live_fixture.h"

namespace longwire::shim {
namespace {

using testing::kDevice;
using testing::kMoments;
using testing::kPage;
using testing::kPatience;
using testing::LiveExchangeTest;
using testing::RunsOf;

TEST_F(LiveExchangeTest, AWordThatTheProgramChangesIsSentWhileWorkRuns) {
  Run();
  *reinterpret_cast<uint32_t*>(memory_ + 64) = 0x01020304;
  const auto pushed = Pushed();
  ASSERT_EQ(pushed.size(), 1u);
  EXPECT_EQ(pushed[0], (testing::Pushed{mirror_, 64, "\x04\x03\x02\x01", wire::PageForm::kWord}));
  patience_ = kMoments;
  EXPECT_TRUE(Pushed().empty()) << "once is enough";
}

TEST_F(LiveExchangeTest, TwoWordsWaitForTheBorder) {
  Run();
  // In one instruction, so that nobody sees the first one alone.
  using Two = long long __attribute__((vector_size(16)));
  *reinterpret_cast<volatile Two*>(memory_ + 128) = Two{1, 1};
  patience_ = kMoments;
  EXPECT_TRUE(Pushed().empty());
  EXPECT_EQ(RunsOf(QueueWork()).size(), 2u);
}

TEST_F(LiveExchangeTest, NothingHappensWithoutWorkOrWithoutPinnedMemory) {
  mirror_ = Add({address(), kDevice, 2 * kPage});
  Settle();
  patience_ = kMoments;
  EXPECT_FALSE(Looks());
  Remove(0);
  Run(true);
  EXPECT_FALSE(Looks());
}

TEST_F(LiveExchangeTest, NothingComesBeforeTheBytesOfACopy) {
  Transfers& transfers = TheSession().transfers();
  const uint64_t transfer = ClientSession::NewId();
  std::string target(64, ' ');
  transfers.ExpectDownload(transfer, HostPlace::Linear(target.data(), target.size()), false);
  Run();
  patience_ = kMoments;
  EXPECT_FALSE(Looks());
  // What the program writes goes to the device all the same.
  *reinterpret_cast<uint32_t*>(memory_ + 64) = 7;
  EXPECT_EQ(Pushed().size(), 1u);
  transfers.DropDownload(transfer);
  patience_ = kPatience;
  EXPECT_TRUE(Looks());
}

TEST_F(LiveExchangeTest, AWordOfTheDeviceComesWhileWorkRuns) {
  Run();
  DeviceChanges(12, 0, 7);
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (Word(12) != 7 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  EXPECT_EQ(Word(12), 7u);
  EXPECT_EQ(context_->once.load(), 0);
}

TEST_F(LiveExchangeTest, AWordWaitsWhileItsPageIsProtected) {
  Run();
  ASSERT_EQ(mprotect(memory_, kPage, PROT_READ), 0);
  DeviceChanges(12, 0, 7);
  std::this_thread::sleep_for(kMoments);
  EXPECT_EQ(Word(12), 0u);
  ASSERT_EQ(mprotect(memory_, kPage, PROT_READ | PROT_WRITE), 0);
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (Word(12) != 7 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  EXPECT_EQ(Word(12), 7u);
}

TEST_F(LiveExchangeTest, WhatBothChangeIsAnError) {
  Run();
  // What the device had changed when it had not seen what was sent.
  *reinterpret_cast<uint32_t*>(memory_ + 12) = 5;
  EXPECT_EQ(Pushed().size(), 1u);
  ::testing::internal::CaptureStderr();
  DeviceChanges(12, 0, 7);
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (context_->once.load() == 0 && std::chrono::steady_clock::now() < end) {
    std::this_thread::yield();
  }
  EXPECT_EQ(context_->once.exchange(0), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(Word(12), 7u);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              ::testing::HasSubstr("of pinned memory, to different values"));
}

TEST(OwnMemoryTest, WhatCannotBeReadIsAnAnswer) {
  auto* pages = static_cast<char*>(
      mmap(nullptr, 3 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  std::memset(pages, 'x', 3 * kPage);
  std::string copy(2 * kPage, ' ');
  const std::vector<iovec> from = {{pages, kPage}, {pages + 2 * kPage, kPage}};
  const std::vector<iovec> to = {{copy.data(), kPage}, {copy.data() + kPage, kPage}};
  ASSERT_TRUE(ReadOwnMemory(from, to));
  EXPECT_EQ(copy, std::string(2 * kPage, 'x'));
  mprotect(pages + 2 * kPage, kPage, PROT_NONE);
  EXPECT_FALSE(ReadOwnMemory(from, to));
  const auto address = reinterpret_cast<uint64_t>(pages);
  EXPECT_TRUE(MayWriteOwnMemory(address + 5));
  EXPECT_FALSE(MayWriteOwnMemory(address + 2 * kPage));
  mprotect(pages, kPage, PROT_READ);
  EXPECT_FALSE(MayWriteOwnMemory(address + 5));
  EXPECT_EQ(pages[5], 'x');
  munmap(pages + 2 * kPage, kPage);
  EXPECT_FALSE(MayWriteOwnMemory(address + 2 * kPage));
  EXPECT_FALSE(ReadOwnMemory(from, to));
  munmap(pages, 2 * kPage);
}

}  // namespace
}  // namespace longwire::shim
