// Mirrors of a test's own memory while work runs.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "client-shim/mirror/live_exchange.h"
#include "client-shim/testing/mirrors_fixture.h"
#include "wire/live/changed_word.h"

namespace longwire::shim::testing {

inline constexpr std::chrono::seconds kPatience{20};
inline constexpr std::chrono::milliseconds kMoments{100};

class LiveExchangeTest : public MirrorsTest {
 protected:
  void SetUp() override {
    MirrorsTest::SetUp();
    WatchRunningWork();
    std::this_thread::sleep_for(kMoments);  // it may look once more behind the last test's work
  }
  void TearDown() override {
    fake_.LetGo(stream_);
    MirrorsTest::TearDown();
  }
  // Work that does not end before the test.
  void Run(bool managed = false) {
    mirror_ = Add({address(), kDevice, 2 * kPage, false, managed});
    Settle();
    fake_.Hold(stream_);
    QueueWork();
  }
  // What was sent until there is a push, or for some moments.
  std::vector<testing::Pushed> Pushed() {
    return RunsOf(Until([](const Record& record) { return record.call == CallId::lwMirrorPush; }));
  }
  bool Looks() {
    auto is_look = [](const Record& record) { return record.call == CallId::lwMirrorLook; };
    const auto records = Until(is_look);
    return std::any_of(records.begin(), records.end(), is_look);
  }
  std::vector<Record> Until(const std::function<bool(const Record&)>& wanted) {
    std::vector<Record> all;
    const auto end = std::chrono::steady_clock::now() + patience_;
    while (std::chrono::steady_clock::now() < end) {
      for (Record& record : fake_.Take()) all.push_back(std::move(record));
      if (std::any_of(all.begin(), all.end(), wanted)) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return all;
  }
  // The device changes a word of four bytes: each look from now on brings it.
  void DeviceChanges(uint64_t offset, uint32_t was, uint32_t is) {
    wire::ChangedWord word;
    word.offset = offset;
    word.bytes = 4;
    std::memcpy(word.was.data(), &was, 4);
    std::memcpy(word.is.data(), &is, 4);
    std::vector<std::byte> delta;
    wire::AppendWord(word, &delta);
    fake_.OnCall<calls::lwMirrorLook>([this, delta](const Record&) {
      fake_.SendMirror(mirror_, delta);
      return Reply{};
    });
  }
  uint32_t Word(uint64_t offset) const {
    return __atomic_load_n(reinterpret_cast<uint32_t*>(memory_ + offset), __ATOMIC_ACQUIRE);
  }

  uint64_t mirror_ = 0;
  std::chrono::milliseconds patience_ = kPatience;
};

}  // namespace longwire::shim::testing
