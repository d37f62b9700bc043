#include "client-shim/mirror/mirrors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <thread>

#include "client-shim/stream/captured_graph.h"
#include "client-shim/stream/program_streams.h"
#include "client-shim/testing/mirrors_fixture.h"
#include "wire/page_delta.h"

namespace longwire::shim {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::Record;
using testing::Reply;

using testing::kDevice;
using testing::kPage;
using testing::MirrorsTest;
using testing::Pushed;
using testing::RunsOf;

TEST_F(MirrorsTest, AMirrorStartsWithZerosOnTheDevice) {
  Mirror* mirror = nullptr;
  ASSERT_EQ(AddMirror(context_, {address(), kDevice, 2 * kPage}, MirrorStart::kZeroed, &mirror),
            CUDA_SUCCESS);
  mirrors_.push_back(mirror);
  std::vector<Record> records = fake_.Take();
  ASSERT_THAT(Names(records), ElementsAre("lwStreamCreate", "lwEventCreate", "lwMirrorAdd",
                                          "lwMemset", "lwEventRecord"));
  auto add = records[2].As<calls::lwMirrorAdd>();
  EXPECT_EQ(add.address, kDevice);
  EXPECT_EQ(add.bytes, 2 * kPage);
  auto zero = records[3].As<calls::lwMemset>();
  EXPECT_EQ(zero.address, kDevice);
  EXPECT_EQ(zero.width, 2 * kPage);
  EXPECT_EQ(zero.value, 0u);
  // In a stream of their own, one after the other.
  EXPECT_NE(records[2].header.stream, 0u);
  EXPECT_EQ(records[2].header.stream, records[3].header.stream);
  EXPECT_EQ(records[2].header.stream, records[4].header.stream);
  Mirror* second = nullptr;
  ASSERT_EQ(
      AddMirror(context_, {address(2), kDevice + 2 * kPage, kPage}, MirrorStart::kZeroed, &second),
      CUDA_SUCCESS);
  mirrors_.push_back(second);
  EXPECT_THAT(fake_.TakeNames(), ElementsAre("lwMirrorAdd", "lwMemset", "lwEventRecord"));
}

TEST_F(MirrorsTest, AMirrorIsFoundByEachOfItsBytes) {
  uint64_t found = 0;
  EXPECT_FALSE(FindMirror(address(), &found));
  Add({address(1), kDevice, kPage});
  Add({address(2), kDevice + 0x10000, 100});
  EXPECT_FALSE(FindMirror(address(1) - 1, &found));
  EXPECT_TRUE(FindMirror(address(1), &found));
  EXPECT_EQ(found, kDevice);
  EXPECT_TRUE(FindMirror(address(2) - 1, &found));
  EXPECT_EQ(found, kDevice + kPage - 1);
  EXPECT_TRUE(FindMirror(address(2), &found));  // the neighbour
  EXPECT_EQ(found, kDevice + 0x10000);
  EXPECT_TRUE(FindMirror(address(2) + 99, &found));
  EXPECT_EQ(found, kDevice + 0x10000 + 99);
  EXPECT_FALSE(FindMirror(address(2) + 100, &found));

  EXPECT_FALSE(IsMirrored(kDevice - 1));
  EXPECT_TRUE(IsMirrored(kDevice));
  EXPECT_TRUE(IsMirrored(kDevice + kPage - 1));
  EXPECT_FALSE(IsMirrored(kDevice + kPage));
  EXPECT_TRUE(IsMirrored(kDevice + 0x10000 + 99));
  Remove(0);
  EXPECT_FALSE(FindMirror(address(1), &found));
  EXPECT_FALSE(IsMirrored(kDevice));
  EXPECT_TRUE(FindMirror(address(2), &found));
}

// The stream of the mirrors' own, for the fake.
Stream* ChannelOf(const std::vector<Record>& records) {
  for (const Record& record : records) {
    if (record.call == CallId::lwMirrorPush) {
      return TheSession().FindStreamById(record.header.stream);
    }
  }
  return nullptr;
}

TEST_F(MirrorsTest, WhatTheProgramChangedIsPushedBeforeWork) {
  const uint64_t mirror = Add({address(), kDevice, 2 * kPage});
  Settle();
  memory_[0] = 'w';
  Stream* channel = ChannelOf(QueueWork());
  ASSERT_NE(channel, nullptr);
  Settle();
  fake_.Hold(channel);  // a push that has finished is not waited for
  memory_[kPage + 5] = 'x';
  std::vector<Record> records = QueueWork();
  EXPECT_THAT(Names(records),
              ElementsAre("lwMirrorPush", "lwEventRecord", "lwStreamWaitEvent", "lwMemset"));
  // Nothing on the device can change the page: it goes as a whole.
  std::string page(kPage, '\0');
  page[5] = 'x';
  EXPECT_THAT(RunsOf(records), ElementsAre(Pushed{mirror, kPage, page, wire::PageForm::kWhole}));
  auto record = records[1].As<calls::lwEventRecord>();
  auto wait = records[2].As<calls::lwStreamWaitEvent>();
  EXPECT_EQ(wait.event, record.event);
  EXPECT_EQ(wait.version, record.version);
  EXPECT_EQ(records[2].header.stream, stream_->id);
  EXPECT_EQ(records[1].header.stream, channel->id);
  fake_.LetGo(channel);
}

TEST_F(MirrorsTest, BesideWorkOnlyChangedBytesArePushed) {
  const uint64_t mirror = Add({address(), kDevice, 2 * kPage});
  Settle();
  fake_.Hold(stream_);
  QueueWork();
  memory_[7] = 'a';
  memory_[8] = 'b';
  memory_[100] = 'c';
  EXPECT_THAT(RunsOf(QueueWork()), ElementsAre(Pushed{mirror, 7, "ab", wire::PageForm::kMasked},
                                               Pushed{mirror, 100, "c", wire::PageForm::kMasked}));
  // Once is enough.
  EXPECT_THAT(RunsOf(QueueWork()), IsEmpty());
  memory_[7] = 'b';
  EXPECT_THAT(RunsOf(QueueWork()), ElementsAre(Pushed{mirror, 7, "b", wire::PageForm::kMasked}));
  fake_.LetGo(stream_);
}

TEST_F(MirrorsTest, ManagedMemoryIsPushedWithAskingForConflicts) {
  const uint64_t mirror = Add({address(), kDevice, kPage, false, true});
  Settle();
  QueueWork();
  memory_[1] = 'm';
  EXPECT_THAT(RunsOf(QueueWork()), ElementsAre(Pushed{mirror, 1, "m", wire::PageForm::kChecked}));
}

TEST_F(MirrorsTest, OnlyTheChangedMirrorIsPushed) {
  Add({address(), kDevice, kPage});
  const uint64_t second = Add({address(1), kDevice + 0x10000, kPage});
  Settle();
  QueueWork();
  memory_[kPage] = 's';
  memory_[2 * kPage] = 'n';  // in no mirror
  EXPECT_THAT(RunsOf(QueueWork()), ElementsAre(Pushed{second, 0, "s", wire::PageForm::kMasked}));
}

TEST_F(MirrorsTest, AStreamWaitsOnceForAPushThatIsUnfinished) {
  Add({address(), kDevice, kPage});
  Settle();
  Stream* other = NewTestStream();
  memory_[0] = '1';
  Stream* channel = ChannelOf(QueueWork());
  ASSERT_NE(channel, nullptr);
  fake_.Hold(channel);
  memory_[0] = '2';
  EXPECT_THAT(Names(QueueWork()),
              ElementsAre("lwMirrorPush", "lwEventRecord", "lwStreamWaitEvent", "lwMemset"));
  EXPECT_THAT(Names(QueueWork()), ElementsAre("lwMemset"));
  EXPECT_THAT(Names(QueueWork(other)), ElementsAre("lwStreamWaitEvent", "lwMemset"));
  memory_[0] = '3';
  EXPECT_THAT(RunsOf(QueueWork()).size(), 1u);
  fake_.LetGo(channel);
  // It has finished: nobody need wait for it.
  EXPECT_THAT(Names(QueueWork(other)), ElementsAre("lwMemset"));
}

TEST_F(MirrorsTest, ACapturingStreamPushesNothing) {
  Add({address(), kDevice, kPage});
  Settle();
  ASSERT_EQ(BeginCapture(stream_, CaptureMode::kRelaxed, nullptr, {}), CUDA_SUCCESS);
  memory_[0] = '1';
  fake_.Take();
  { DeviceWork work(stream_); }
  EXPECT_THAT(fake_.TakeNames(), IsEmpty());
  CUgraph graph = nullptr;
  EXPECT_EQ(EndCapture(stream_, &graph), CUDA_SUCCESS);
}

TEST_F(MirrorsTest, OnlyUsedBytesAreExchangedUntilTheMirrorGrows) {
  MirrorRange range{address(), kDevice, 3 * kPage};
  range.used = kPage;
  const uint64_t mirror = Add(range);
  Settle();
  QueueWork();
  uint64_t found = 0;
  EXPECT_TRUE(FindMirror(address() + kPage - 1, &found));
  EXPECT_FALSE(FindMirror(address(1), &found));
  EXPECT_TRUE(IsMirrored(kDevice + 3 * kPage - 1));  // the device's memory is all there
  memory_[kPage] = 'g';
  memory_[3 * kPage - 1] = 'h';
  EXPECT_THAT(RunsOf(QueueWork()), IsEmpty());
  GrowMirror(address(), 2 * kPage);
  EXPECT_THAT(RunsOf(QueueWork()),
              ElementsAre(Pushed{mirror, kPage, "g", wire::PageForm::kMasked}));
  GrowMirror(address(), kPage);  // it does not shrink
  EXPECT_TRUE(FindMirror(address(1), &found));
  GrowMirror(address(), 100 * kPage);
  EXPECT_THAT(RunsOf(QueueWork()),
              ElementsAre(Pushed{mirror, 3 * kPage - 1, "h", wire::PageForm::kMasked}));
  EXPECT_FALSE(FindMirror(address(3), &found));
}

TEST_F(MirrorsTest, AWaitReturnsWhatTheDeviceWrote) {
  const uint64_t mirror = Add({address(), kDevice, 2 * kPage});
  Settle();
  memory_[10] = 'p';
  fake_.Hold(stream_);
  QueueWork();
  DeviceWrites(mirror, kPage + 3, "device");
  std::thread finish([&] {
    while (stream_->awaited == 0 && stream_->wanted == 0) std::this_thread::yield();
    fake_.LetGo(stream_);
  });
  EXPECT_EQ(WaitForStream(stream_, stream_->last), CUDA_SUCCESS);
  finish.join();
  EXPECT_EQ(std::string(memory_ + kPage + 3, 6), "device");
  EXPECT_EQ(memory_[kPage + 2], 0);
  EXPECT_EQ(memory_[kPage + 9], 0);
  EXPECT_EQ(memory_[10], 'p');
  // What came from the device is not pushed to it.
  DeviceWritesNothing();
  EXPECT_THAT(RunsOf(QueueWork()), IsEmpty());
}

TEST_F(MirrorsTest, ThePullStandsBehindTheAwaitedWork) {
  const uint64_t mirror = Add({address(), kDevice, kPage});
  Settle();
  fake_.Hold(stream_);
  QueueWork();
  DeviceWrites(mirror, 0, "d");
  StreamPoint point{stream_, stream_->last};
  const uint64_t work = point.position;
  AwaitedWrites writes({&point, 1});
  std::vector<Record> records = fake_.Take();
  ASSERT_THAT(Names(records), ElementsAre("lwMirrorPull"));
  EXPECT_EQ(records[0].header.stream, stream_->id);
  EXPECT_EQ(records[0].As<calls::lwMirrorPull>().bytes, kPage);
  EXPECT_EQ(point.position, records[0].position);
  EXPECT_GT(point.position, work);
  fake_.LetGo(stream_);
  EXPECT_EQ(writes.Return(), CUDA_SUCCESS);
  EXPECT_EQ(memory_[0], 'd');
  // One round trip was enough: nothing else was asked.
  EXPECT_THAT(fake_.TakeNames(), IsEmpty());
}

TEST_F(MirrorsTest, WithoutWorkNothingIsPulled) {
  Add({address(), kDevice, kPage});
  Settle();
  EXPECT_EQ(ReturnDeviceWrites(), CUDA_SUCCESS);
  EXPECT_THAT(fake_.TakeNames(), IsEmpty());
  QueueWork();
  WaitAndTakeNames();
  Settle();
  EXPECT_EQ(ReturnDeviceWrites(), CUDA_SUCCESS);
  EXPECT_THAT(fake_.TakeNames(), IsEmpty());
}

TEST_F(MirrorsTest, PullsGoOnWhileAnyWorkMayWrite) {
  Add({address(), kDevice, kPage});
  Settle();
  fake_.Hold(stream_);
  QueueWork();
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(ReturnDeviceWrites(), CUDA_SUCCESS);
    EXPECT_THAT(fake_.TakeNames(), ElementsAre("lwMirrorPull"));
  }
  fake_.LetGo(stream_);
  EXPECT_EQ(ReturnDeviceWrites(), CUDA_SUCCESS);
  EXPECT_THAT(fake_.TakeNames(), ElementsAre("lwMirrorPull"));
  EXPECT_EQ(ReturnDeviceWrites(), CUDA_SUCCESS);
  EXPECT_THAT(fake_.TakeNames(), IsEmpty());
}

TEST_F(MirrorsTest, BytesThatTheProgramChangedMeanwhileStay) {
  const uint64_t mirror = Add({address(), kDevice, kPage});
  Settle();
  fake_.Hold(stream_);  // its work may write on
  QueueWork();
  memory_[1] = 'p';
  DeviceWrites(mirror, 2, "d");
  EXPECT_EQ(ReturnDeviceWrites(), CUDA_SUCCESS);
  EXPECT_EQ(memory_[1], 'p');
  EXPECT_EQ(memory_[2], 'd');
  DeviceWritesNothing();
  EXPECT_THAT(RunsOf(QueueWork()), ElementsAre(Pushed{mirror, 1, "p", wire::PageForm::kMasked}));
  fake_.LetGo(stream_);
}

TEST_F(MirrorsTest, WhereBothChangedAByteTheDevicesStays) {
  const uint64_t mirror = Add({address(), kDevice, kPage});
  Settle();
  QueueWork();
  memory_[1] = 'p';
  DeviceWrites(mirror, 1, "d");
  EXPECT_EQ(ReturnDeviceWrites(), CUDA_SUCCESS);
  EXPECT_EQ(memory_[1], 'd');
  EXPECT_EQ(context_->once, 0);  // pinned memory: the program's fault
}

TEST_F(MirrorsTest, OtherBytesOfAWordThatTheDeviceChangedStay) {
  const uint64_t mirror = Add({address(), kDevice, kPage, false, true});
  Settle();
  QueueWork();
  memory_[3] = 'p';
  DeviceWrites(mirror, 0, "abc");
  EXPECT_EQ(ReturnDeviceWrites(), CUDA_SUCCESS);
  EXPECT_EQ(std::string(memory_, 4), "abcp");
  EXPECT_EQ(context_->once, 0);
  QueueWork();
  memory_[16] = 'p';
  DeviceWrites(mirror, 8, "eight bytes");
  EXPECT_EQ(ReturnDeviceWrites(), CUDA_SUCCESS);
  EXPECT_EQ(context_->once, CUDA_ERROR_NOT_SUPPORTED);  // of byte 16
  EXPECT_EQ(std::string(memory_ + 8, 11), "eight bytes");
  EXPECT_EQ(std::string(memory_, 4), "abcp");
  context_->once = 0;
}

TEST_F(MirrorsTest, InManagedMemoryThatIsAnError) {
  const uint64_t mirror = Add({address(), kDevice, kPage, false, true});
  Settle();
  QueueWork();
  memory_[1] = 's';
  DeviceWrites(mirror, 1, "s");  // to the same value
  EXPECT_EQ(ReturnDeviceWrites(), CUDA_SUCCESS);
  EXPECT_EQ(context_->once, 0);
  QueueWork();
  memory_[1] = 'p';
  DeviceWrites(mirror, 1, "d");
  EXPECT_EQ(ReturnDeviceWrites(), CUDA_SUCCESS);
  EXPECT_EQ(memory_[1], 'd');
  EXPECT_EQ(context_->once, CUDA_ERROR_NOT_SUPPORTED);
  context_->once = 0;
}

TEST_F(MirrorsTest, AMirrorFromTheDeviceStartsWithItsContents) {
  fake_.OnCall<calls::lwMirrorPull>([this](const Record& record) {
    std::vector<std::byte> now(kPage, std::byte{'d'}), before(kPage), delta;
    wire::AppendDelta(now, before.data(), 0, wire::PageForm::kMasked, SIZE_MAX, &delta);
    fake_.SendMirror(record.As<calls::lwMirrorPull>().mirror, delta);
    return Reply{};
  });
  std::memset(memory_, 'p', 2 * kPage);
  Add({address(), kDevice, kPage}, MirrorStart::kFromDevice);
  EXPECT_EQ(std::string(memory_, kPage), std::string(kPage, 'd'));
  EXPECT_EQ(memory_[kPage], 'p');
}

TEST_F(MirrorsTest, RemovingWaitsUntilTheWorkerHasDoneIt) {
  const uint64_t mirror = Add({address(), kDevice, kPage});
  fake_.Take();
  Remove(0);
  std::vector<Record> records = fake_.TakeOnly<calls::lwMirrorRemove>();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].As<calls::lwMirrorRemove>().mirror, mirror);
  EXPECT_THAT(Names(QueueWork()), ElementsAre("lwMemset"));
}

TEST_F(MirrorsTest, FreedMemoryIsNotTouched) {
  char* gone = MapPages(2);
  const uint64_t mirror = Add({reinterpret_cast<uint64_t>(gone), kDevice, 2 * kPage, true});
  const uint64_t staying = Add({address(), kDevice + 0x10000, kPage, true});
  Settle();
  QueueWork();
  munmap(gone + kPage, kPage);
  gone[0] = 'g';  // a part of it is there
  memory_[0] = 's';
  EXPECT_THAT(RunsOf(QueueWork()), ElementsAre(Pushed{staying, 0, "s", wire::PageForm::kMasked}));
  DeviceWrites(mirror, 0, "d");
  EXPECT_EQ(ReturnDeviceWrites(), CUDA_SUCCESS);
  EXPECT_EQ(gone[0], 'g');
  munmap(gone, kPage);
}

TEST_F(MirrorsTest, AContextsEndForgetsItsMirrors) {
  Context* other = nullptr;
  ASSERT_EQ(NewContext(0, 0, &other), CUDA_SUCCESS);
  Mirror* mirror = nullptr;
  ASSERT_EQ(AddMirror(other, {address(), kDevice, kPage}, MirrorStart::kZeroed, &mirror),
            CUDA_SUCCESS);
  Add({address(1), kDevice + kPage, kPage});
  EXPECT_EQ(EndContext(other), CUDA_SUCCESS);
  uint64_t found = 0;
  EXPECT_FALSE(FindMirror(address(), &found));
  EXPECT_TRUE(FindMirror(address(1), &found));
}

}  // namespace
}  // namespace longwire::shim
