// States of several words while work runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <memory>
#include <thread>

#include "client-shim/testing/live_fixture.h"
#include "wire/limits.h"

namespace longwire::shim {
namespace {

using testing::kDevice;
using testing::kMoments;
using testing::kPage;
using testing::kPatience;
using testing::Record;
using testing::Reply;

class LiveStatesTest : public testing::LiveExchangeTest {
 protected:
  // The pushes until there is the last one of a state, or for some moments.
  std::vector<Record> State() {
    auto records = Until([](const Record& record) {
      return record.call == CallId::lwMirrorState && IsLast(record);
    });
    std::erase_if(records,
                  [](const Record& record) { return record.call != CallId::lwMirrorState; });
    return records;
  }
  static bool IsLast(const Record& record) { return record.As<calls::lwMirrorState>().last; }
  // Two words at once, so that nobody sees one alone.
  void WriteTwo(uint64_t at, long long value) {
    using Two = long long __attribute__((vector_size(16)));
    *reinterpret_cast<volatile Two*>(memory_ + at) = Two{value, value};
  }
  volatile uint64_t& Long(uint64_t at) const {
    return *reinterpret_cast<volatile uint64_t*>(memory_ + at);
  }
  // What the device has changed: words that are `is` and were `was`.
  static std::vector<std::byte> Delta(const std::vector<uint64_t>& places, uint64_t was,
                                      uint64_t is) {
    std::vector<std::byte> delta;
    for (uint64_t place : places) {
      std::vector<std::byte> before(kPage), now(kPage);
      for (size_t i = 0; i < kPage; i += 8) std::memcpy(&before[i], &was, 8);
      now = before;
      std::memcpy(&now[place % kPage], &is, 8);
      wire::AppendDelta(now, before.data(), place - place % kPage, wire::PageForm::kMasked,
                        SIZE_MAX, &delta);
    }
    return delta;
  }
  // Whoever looks for a state gets it, once.
  void DeviceHas(std::vector<std::byte> delta) {
    fake_.OnCall<calls::lwMirrorLook>([this, delta, sent = false](const Record& record) mutable {
      if (record.As<calls::lwMirrorLook>().whole && !sent) {
        fake_.SendMirror(mirror_, delta);
        sent = true;
      }
      return Reply{};
    });
  }
  static bool Comes(const std::function<bool()>& done) {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (!done() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    return done();
  }
};

TEST_F(LiveStatesTest, SeveralWordsAreAStateWhereWorkStandsStill) {
  Run();
  WriteTwo(128, 7);
  const auto pushes = State();
  ASSERT_EQ(pushes.size(), 1u);
  EXPECT_TRUE(IsLast(pushes[0]));
  const auto runs = testing::RunsOf(pushes);
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0], (testing::Pushed{mirror_, 128, "\x07", wire::PageForm::kChecked}));
  EXPECT_EQ(runs[1].offset, 136u);
  patience_ = kMoments;
  EXPECT_TRUE(State().empty()) << "once is enough";
  *reinterpret_cast<uint32_t*>(memory_ + 64) = 1;
  EXPECT_EQ(Pushed().size(), 1u) << "words go on";
}

TEST_F(LiveStatesTest, LargeStatesComeInParts) {
  constexpr size_t kPages = 200;
  char* many = MapPages(kPages);
  const uint64_t other = Add({reinterpret_cast<uint64_t>(many), 2 * kDevice, kPages * kPage});
  Run();
  for (size_t i = 0; i < kPages * kPage; ++i) many[i] = static_cast<char>(i % 100 + 1);
  memory_[5] = 5;
  std::vector<Record> pushes = State();
  ASSERT_GE(pushes.size(), 3u);
  uint64_t bytes = 0;
  for (size_t i = 0; i < pushes.size(); ++i) {
    EXPECT_EQ(IsLast(pushes[i]), i + 1 == pushes.size());
    const auto push = pushes[i].As<calls::lwMirrorState>();
    EXPECT_TRUE(push.mirror == other || push.mirror == mirror_);
    bytes += push.delta.size();
  }
  EXPECT_GT(bytes, kPages * kPage);
  Remove(0);
  munmap(many, kPages * kPage);
}

// What a program writes without a pause is taken while its pages are held.
TEST_F(LiveStatesTest, StatesOfAProgramThatAlwaysWritesAreInOrder) {
  Run();
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (uint64_t round = 1; !stop; ++round) {
      Long(8) = round;  // what is copied first
      Long(kPage + 512) = round;
    }
  });
  uint64_t payload = 0, flag = 0;
  for (int states = 0; states < 3; ++states) {
    const auto runs = testing::RunsOf(State());
    ASSERT_FALSE(runs.empty());
    for (const testing::Pushed& run : runs) {
      uint64_t& word = run.offset < kPage ? payload : flag;
      std::memcpy(reinterpret_cast<char*>(&word) + run.offset % 8, run.bytes.data(),
                  run.bytes.size());
    }
    EXPECT_GE(payload, flag);
    EXPECT_LE(payload, flag + 1);
  }
  stop = true;
  writer.join();
}

TEST_F(LiveStatesTest, AStateOfTheDeviceIsSeenAtOnce) {
  Run();
  std::atomic<bool> stop{false};
  std::atomic<int> torn{0};
  std::thread reader([&] {
    while (!stop) {
      const uint64_t flag = Long(kPage + 512);
      torn += Long(8) < flag;
      std::this_thread::yield();
    }
  });
  for (uint64_t round = 1; round <= 20; ++round) {
    DeviceHas(Delta({kPage + 512, 8}, round - 1, round));  // the flag comes first
    EXPECT_TRUE(Comes([&] { return Long(8) == round; })) << round;
    EXPECT_EQ(Long(kPage + 512), round);
  }
  stop = true;
  reader.join();
  EXPECT_EQ(torn, 0);
  EXPECT_EQ(context_->once.load(), 0);
}

TEST_F(LiveStatesTest, WhatTheProgramHasChangedIsAConflict) {
  Run();
  ::testing::internal::CaptureStderr();
  auto sent = std::make_shared<std::atomic<bool>>(false);
  fake_.OnCall<calls::lwMirrorLook>([this, sent](const Record& record) {
    if (record.As<calls::lwMirrorLook>().whole && !sent->exchange(true)) {
      Long(8) = 9;  // before the device's comes
      Long(24) = 9;
      fake_.SendMirror(mirror_, Delta({8, kPage}, 0, 5));
    }
    return Reply{};
  });
  EXPECT_TRUE(Comes([&] { return context_->once.load() != 0; }));
  EXPECT_EQ(context_->once.exchange(0), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(Long(8), 5u) << "the device's value stays";
  EXPECT_EQ(Long(24), 9u);
  EXPECT_EQ(Long(kPage), 5u);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              ::testing::HasSubstr("of pinned memory, to different values"));
}

TEST_F(LiveStatesTest, AStateWaitsWhileAPageIsProtected) {
  Run();
  ASSERT_EQ(mprotect(memory_ + kPage, kPage, PROT_READ), 0);
  DeviceHas(Delta({8, kPage}, 0, 5));
  std::this_thread::sleep_for(std::chrono::milliseconds(700));  // work stands still by then
  EXPECT_EQ(Long(8), 0u);
  ASSERT_EQ(mprotect(memory_ + kPage, kPage, PROT_READ | PROT_WRITE), 0);
  EXPECT_TRUE(Comes([&] { return Long(8) == 5; }));
  EXPECT_EQ(Long(kPage), 5u);
}

TEST_F(LiveStatesTest, LockedMemoryThatDoesNotChangeIsInNobodysWay) {
  Run();
  ASSERT_EQ(mlock(memory_ + kPage, kPage), 0);
  DeviceHas(Delta({8, 64}, 0, 5));
  EXPECT_TRUE(Comes([&] { return Long(8) == 5; }));
  EXPECT_EQ(Long(64), 5u);
  ASSERT_EQ(munlock(memory_ + kPage, kPage), 0);
}

TEST_F(LiveStatesTest, OfMuchMemoryStatesAreAskedForAndNoWords) {
  constexpr uint64_t kMuch = wire::kLookBytes;
  char* much = MapPages(kMuch / kPage);
  Add({reinterpret_cast<uint64_t>(much), 2 * kDevice, kMuch, false, false});
  Run();
  DeviceHas(Delta({kPage + 512, 8}, 0, 1));
  EXPECT_TRUE(Comes([&] { return Long(8) == 1; }));
  EXPECT_EQ(Long(kPage + 512), 1u);
  for (const Record& record : fake_.Take()) {
    if (record.call != CallId::lwMirrorLook) continue;
    const auto look = record.As<calls::lwMirrorLook>();
    EXPECT_TRUE(look.whole);
    EXPECT_EQ(look.mirror.size(), 2u);
  }
  fake_.LetGo(stream_);
  Settle();
  Remove(0);
  munmap(much, kMuch);
}

TEST_F(LiveStatesTest, StatesComeToManagedMemoryAlone) {
  Run(true);
  DeviceHas(Delta({kPage + 512, 8}, 0, 1));
  EXPECT_TRUE(Comes([&] { return Long(8) == 1; }));
}

// The pages of a delta are those of the mirror, which may begin anywhere.
TEST_F(LiveStatesTest, AMirrorMayBeginWithinAPage) {
  mirror_ = Add({address() + 12, kDevice, 2 * kPage, false, false});
  Settle();
  fake_.Hold(stream_);
  QueueWork();
  std::vector<std::byte> now(2 * kPage, std::byte{7}), before(2 * kPage), delta;
  now[2 * kPage - 1] = std::byte{0};
  wire::AppendDelta(now, before.data(), 0, wire::PageForm::kMasked, SIZE_MAX, &delta);
  DeviceHas(delta);
  EXPECT_TRUE(Comes([&] { return Long(2 * kPage) == 0x0707070707070707; }));
  EXPECT_EQ(memory_[11], 0);
  EXPECT_EQ(memory_[12], 7);
  EXPECT_EQ(memory_[12 + 2 * kPage - 2], 7);
  EXPECT_EQ(memory_[12 + 2 * kPage - 1], 0);
}

// Kernels end with the answer to the last message, and the program makes no call for it.
TEST_F(LiveStatesTest, WhatAKernelLeavesBehindComesToo) {
  Run();
  fake_.LetGo(stream_);
  DeviceHas(Delta({kPage + 512, 8}, 0, 1));
  EXPECT_TRUE(Comes([&] { return Long(8) == 1; }));
}

// A wait that returns has all that came, and not before whoever is to apply the state has done so.
TEST_F(LiveStatesTest, BordersComeBehindAState) {
  Run();
  std::atomic<bool> asked{false}, answer{false};
  fake_.OnCall<calls::lwMirrorLook>([&](const Record& record) {
    if (record.As<calls::lwMirrorLook>().whole && !asked.exchange(true)) {
      while (!answer) std::this_thread::yield();
      fake_.SendMirror(mirror_, Delta({kPage + 512, 8}, 0, 1));
    }
    return Reply{};
  });
  EXPECT_TRUE(Comes([&] { return asked.load(); }));
  std::atomic<bool> returned{false};
  std::thread border([&] {
    EXPECT_EQ(ReturnDeviceWrites(), CUDA_SUCCESS);
    returned = true;
  });
  std::this_thread::sleep_for(kMoments);
  EXPECT_FALSE(returned);
  answer = true;
  border.join();
  EXPECT_EQ(Long(8), 1u);
}

}  // namespace
}  // namespace longwire::shim
