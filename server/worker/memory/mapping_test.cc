// New chunks: lent at once, imported and mapped beside the log thread.
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <tuple>

#include "server/worker/testing/lender.h"

namespace longwire::worker::testing {
namespace {

constexpr uint64_t kOne = 11;
constexpr uint64_t kBytes = uint64_t{2} << 20;
constexpr uint64_t kWindow = uint64_t{1} << 45;  // of the session's device

class Mapping : public ::testing::Test {
 protected:
  Mapping() : session_(std::make_unique<TestSession>()), lender_(Device0()) {
    session_->CreateStream(kOne);
    session_->LoadFunction();
  }
  ~Mapping() override {
    session_->driver.hold_imports = false;
    session_.reset();
  }

  Device& Device0() { return session_->session->devices()[0]; }
  FakeDriver& driver() { return session_->driver; }
  uint64_t AskForLease(size_t chunks = 1) {
    calls::lwLease lease;
    std::vector<uint64_t> bytes(chunks, kBytes);
    lease.bytes = bytes;
    return session_->Send(lease);
  }
  uint64_t Map(uint64_t chunk, uint64_t place) {
    calls::lwMap map;
    map.address = kWindow + place * kBytes;
    map.chunk = {chunk};
    return session_->Send(map, 0, wire::kWantsReply);
  }

  std::unique_ptr<TestSession> session_;
  Lender lender_;
};

TEST_F(Mapping, AChunkIsLentWhileAnotherIsMapped) {
  driver().hold_imports = true;
  EXPECT_EQ(session_->ExpectReply(AskForLease()).header.code, 0);
  uint64_t mapped = Map(1, 0);
  EXPECT_EQ(session_->ExpectReply(AskForLease()).header.code, 0);
  EXPECT_TRUE(session_->Quiet(wire::DownKind::kReply)) << "the mapping";
  driver().hold_imports = false;
  EXPECT_EQ(session_->ExpectReply(mapped).header.code, 0);
}

TEST_F(Mapping, StreamsWaitForIt) {
  driver().hold_imports = true;
  session_->ExpectReply(AskForLease());
  Map(1, 0);
  uint64_t last = session_->Launch(kOne, 1);
  EXPECT_TRUE(session_->Quiet(wire::DownKind::kProgress));
  EXPECT_EQ(driver().IndexOf("launch s1 1"), -1);
  driver().hold_imports = false;
  session_->ExpectProgress(kOne, last);
  EXPECT_LT(driver().IndexOf("map"), driver().IndexOf("launch s1 1"));
}

TEST_F(Mapping, CallsOutsideStreamsWaitForIt) {
  driver().hold_imports = true;
  session_->ExpectReply(AskForLease());
  Map(1, 0);
  calls::cuDeviceGetDevResource ask;
  uint64_t asked = session_->Send(ask);
  EXPECT_TRUE(session_->Quiet(wire::DownKind::kReply));
  driver().hold_imports = false;
  size_t mapped_at = session_->Expect(wire::DownKind::kReply).order;
  EXPECT_LT(mapped_at, session_->ExpectReply(asked).order);
}

TEST_F(Mapping, LaterMapsKeepTheOrder) {
  driver().hold_imports = true;
  session_->ExpectReply(AskForLease(2));
  uint64_t first = Map(1, 0), second = Map(2, 0);
  driver().hold_imports = false;
  EXPECT_EQ(session_->ExpectReply(first).header.code, 0);
  EXPECT_EQ(session_->ExpectReply(second).header.code, CUDA_ERROR_ALREADY_MAPPED);
  uint64_t third = Map(2, 1);
  EXPECT_EQ(session_->ExpectReply(third).header.code, 0);
}

TEST_F(Mapping, WhatWaitsForItsTurnIsNotHeldUpByItsOwnUnmapping) {
  driver().hold_imports = true;
  session_->ExpectReply(AskForLease(2));
  uint64_t first = Map(1, 0), second = Map(2, 1);
  calls::lwUnmap unmap;
  unmap.address = kWindow + kBytes;
  unmap.bytes = kBytes;
  uint64_t unmapped = session_->Send(unmap, 0, wire::kWantsReply);
  uint64_t again = Map(2, 1);
  EXPECT_TRUE(session_->Quiet(wire::DownKind::kReply));
  driver().hold_imports = false;
  for (uint64_t each : {first, second, unmapped, again}) {
    EXPECT_EQ(session_->ExpectReply(each).header.code, 0);
  }
}

TEST_F(Mapping, WhatWasNeverMappedIsNotImported) {
  session_->ExpectReply(AskForLease());
  calls::lwReturnChunks back;
  back.chunk = {1};
  session_->Send(back);
  session_->Until([&] { return lender_.returned == 1; }, "the chunk's return");
  EXPECT_EQ(driver().IndexOf("import"), -1);
  EXPECT_EQ(driver().IndexOf("release"), -1);
}

TEST_F(Mapping, ButForFewDescriptors) {
  constexpr size_t kChunks = 100, kKept = 64;
  EXPECT_EQ(session_->ExpectReply(AskForLease(kChunks)).header.code, 0);
  auto log = driver().log();
  EXPECT_EQ(std::ranges::count(log, "import"), static_cast<ptrdiff_t>(kChunks - kKept));
  EXPECT_EQ(session_->ExpectReply(Map(1, 0)).header.code, 0);
  EXPECT_EQ(session_->ExpectReply(Map(100, 1)).header.code, 0);
  log = driver().log();
  EXPECT_EQ(std::ranges::count(log, "import"), static_cast<ptrdiff_t>(kChunks - kKept + 1));
}

// What a session had that moves here.
class Moving : public Mapping {
 protected:
  Moving() {
    EXPECT_EQ(Device0().keeper->Greet(&why_), 0) << why_;
    EXPECT_TRUE(Device0().keeper->charges());
  }
  CUresult Restore(size_t chunks) {
    CarriedMemory carried;
    for (uint64_t number = 1; number <= chunks; ++number) {
      carried.chunks.push_back({number, kBytes});
      carried.mappings.push_back({kWindow + number * kBytes, kBytes, number, true});
    }
    carried.next_chunk = chunks + 1;
    return session_->session->memory().Restore(carried, &why_);
  }

  std::string why_;
};

TEST_F(Moving, HasFewDescriptorsAtOnce) {
  constexpr size_t kChunks = 900;
  EXPECT_EQ(Restore(kChunks), CUDA_SUCCESS) << why_;
  EXPECT_LE(lender_.under_way.load(), keeper::kChunksPerPacket);
  auto log = driver().log();
  auto first_map = std::ranges::find(log, "map");
  // What was not imported by then had a descriptor.
  EXPECT_GE(std::count(log.begin(), first_map, "import"),
            static_cast<ptrdiff_t>(kChunks - keeper::kChunksPerPacket));
  EXPECT_EQ(std::ranges::count(log, "import"), static_cast<ptrdiff_t>(kChunks));
  EXPECT_EQ(std::ranges::count(log, "map"), static_cast<ptrdiff_t>(kChunks));
}

TEST_F(Moving, TheKeeperMakesRoomForWhatTheDriverNeeds) {
  driver().maps_fail = true;
  lender_.lets_go = true;
  EXPECT_EQ(Restore(3), CUDA_SUCCESS) << why_;
  EXPECT_FALSE(driver().maps_fail);
}

// The old worker goes on meanwhile: what it has by then is what there is, and what stayed as it was
// is left alone.
TEST_F(Moving, IsRestoredAgainByWhatHasChanged) {
  Memory& memory = session_->session->memory();
  EXPECT_EQ(Restore(3), CUDA_SUCCESS) << why_;
  const auto count = [&](const char* call) {
    const auto log = driver().log();
    return std::ranges::count(log, call);
  };
  CarriedMemory changed;
  changed.next_chunk = 6;
  changed.chunks = {{1, kBytes}, {3, kBytes}, {5, kBytes}};
  // 1 stays; 3 lies elsewhere, in the place of 2, which is gone; 5 is new.
  changed.mappings = {{kWindow + kBytes, kBytes, 1, true},
                      {kWindow + 2 * kBytes, kBytes, 3, true},
                      {kWindow + 5 * kBytes, kBytes, 5, false}};
  EXPECT_EQ(memory.Restore(changed, &why_), CUDA_SUCCESS) << why_;
  EXPECT_EQ(count("unmap"), 2);
  EXPECT_EQ(count("map"), 5);
  EXPECT_EQ(count("import"), 4);
  session_->Until([&] { return lender_.returned == 1; }, "the return of what is gone");
  const CarriedMemory has = memory.Carry();
  const auto numbers = [](const CarriedMapping& one) {
    return std::make_tuple(one.address, one.bytes, one.chunk, one.access);
  };
  EXPECT_EQ(has.next_chunk, 6u);
  ASSERT_EQ(has.chunks.size(), 3u);
  ASSERT_EQ(has.mappings.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(has.chunks[i].number, changed.chunks[i].number);
    EXPECT_EQ(numbers(has.mappings[i]), numbers(changed.mappings[i]));
  }
  // And nothing where nothing has changed.
  EXPECT_EQ(memory.Restore(changed, &why_), CUDA_SUCCESS) << why_;
  EXPECT_EQ(count("map"), 5);
  EXPECT_EQ(count("unmap"), 2);
}

TEST_F(Moving, AFullDeviceIsTold) {
  driver().maps_fail = true;
  EXPECT_EQ(Restore(3), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(why_, "the driver cannot map a chunk");
}

}  // namespace
}  // namespace longwire::worker::testing
