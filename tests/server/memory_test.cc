// The real keeper on a device (the software device, or the driver that LONGWIRE_TEST_DRIVER names):
// memory is shared between processes, and no session sees what another one left in it.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "base/poll_set.h"
#include "server/protocol/keeper.h"
#include "server/warden/spawn.h"

namespace longwire::keeper {
namespace {

using std::chrono::milliseconds;
constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr milliseconds kPatience{60'000};

class MemoryTest : public testing::Test {
 protected:
  void SetUp() override {
    const char* driver = std::getenv("LONGWIRE_TEST_DRIVER");
    wire::Descriptor end;
    ASSERT_TRUE(wire::LocalPair(&control, &end));
    keeper = warden::Spawn(
        {KEEPER,
         {"--driver", driver != nullptr ? driver : "software", "--device", "0", "--control", "3"},
         {"LONGWIRE_SOFTGPU_MEMORY=268435456"},
         {end.get()},
         false});
    ASSERT_NE(keeper.pid, 0);
    end.Reset();
    auto packet = wire::ReceiveMessage(control.get(), kPatience);
    ASSERT_TRUE(packet && message::Unpack(packet->bytes, &state) == wire::WireResult::kOk);
    ASSERT_EQ(state.code, 0) << state.sentence;
  }

  void TearDown() override {
    control.Reset();
    EXPECT_EQ(Wait(keeper), 0);
  }

  // The exit code.
  static int Wait(const warden::Process& process) {
    int exit_code = -1;
    int signal = 0;
    base::PollOne(process.pidfd.get(), POLLIN, kPatience);
    return warden::Reap(process, &exit_code, &signal) ? exit_code : -1;
  }

  wire::Descriptor Attach(uint64_t worker) {
    wire::Descriptor ours, keepers;
    EXPECT_TRUE(wire::LocalPair(&ours, &keepers));
    const int files[] = {keepers.get()};
    EXPECT_TRUE(wire::SendMessage(control.get(), message::Pack(keeper::Attach{worker, {}}), files));
    return ours;
  }

  static std::vector<wire::Descriptor> GetChunks(const wire::Descriptor& worker,
                                                 std::vector<uint64_t> sizes) {
    EXPECT_TRUE(wire::SendMessage(worker.get(), message::Pack(Lease{1, std::move(sizes)})));
    auto packet = wire::ReceiveMessage(worker.get(), kPatience);
    return packet ? std::move(packet->descriptors) : std::vector<wire::Descriptor>();
  }

  int DeviceBytes(const wire::Descriptor& chunk, uint64_t bytes, const char* what, int value) {
    return Wait(
        warden::Spawn({DEVICE_BYTES,
                       {state.driver, "3", std::to_string(bytes), what, std::to_string(value)},
                       {"LONGWIRE_SOFTGPU_MEMORY=268435456"},
                       {chunk.get()},
                       false}));
  }

  wire::Descriptor control;
  warden::Process keeper;
  KeeperState state;
};

TEST_F(MemoryTest, ProcessesShareAChunk) {
  wire::Descriptor worker = Attach(1);
  auto chunks = GetChunks(worker, {2 * kMiB});
  ASSERT_EQ(chunks.size(), 1u);
  EXPECT_EQ(DeviceBytes(chunks[0], 2 * kMiB, "check", 0), 0);
  EXPECT_EQ(DeviceBytes(chunks[0], 2 * kMiB, "fill", 0xa5), 0);
  EXPECT_EQ(DeviceBytes(chunks[0], 2 * kMiB, "check", 0xa5), 0);
  EXPECT_EQ(DeviceBytes(chunks[0], 2 * kMiB, "check", 0), 1);
}

TEST_F(MemoryTest, TheNextSessionSeesZeros) {
  wire::Descriptor first = Attach(1);
  auto chunks = GetChunks(first, {64 * kMiB, 2 * kMiB});
  ASSERT_EQ(chunks.size(), 2u);
  EXPECT_EQ(DeviceBytes(chunks[0], 64 * kMiB, "fill", 0x5e), 0);
  EXPECT_EQ(DeviceBytes(chunks[1], 2 * kMiB, "fill", 0x5e), 0);
  first.Reset();
  wire::Descriptor second = Attach(2);
  auto again = GetChunks(second, {64 * kMiB, 2 * kMiB});
  ASSERT_EQ(again.size(), 2u);
  EXPECT_EQ(DeviceBytes(again[0], 64 * kMiB, "check", 0), 0);
  EXPECT_EQ(DeviceBytes(again[1], 2 * kMiB, "check", 0), 0);
}

// The driver may hand out again what another session has released, with its bytes.
TEST_F(MemoryTest, MemoryThatTheDriverReusesIsClearedToo) {
  const std::vector<uint64_t> small(6, 32 * kMiB);
  wire::Descriptor first = Attach(1);
  auto chunks = GetChunks(first, small);
  ASSERT_EQ(chunks.size(), 6u);
  for (const auto& chunk : chunks) EXPECT_EQ(DeviceBytes(chunk, 32 * kMiB, "fill", 0x5e), 0);
  first.Reset();
  wire::Descriptor second = Attach(2);
  chunks = GetChunks(second, {150 * kMiB});  // the small ones are released for it
  ASSERT_EQ(chunks.size(), 1u);
  EXPECT_EQ(DeviceBytes(chunks[0], 150 * kMiB, "check", 0), 0);
  second.Reset();
  wire::Descriptor third = Attach(3);
  chunks = GetChunks(third, small);
  ASSERT_EQ(chunks.size(), 6u);
  for (const auto& chunk : chunks) EXPECT_EQ(DeviceBytes(chunk, 32 * kMiB, "check", 0), 0);
}

// A session that lives on gave memory back because another one lacked it.
TEST_F(MemoryTest, WhatIsDrainedFromALivingSessionIsCleared) {
  wire::Descriptor first = Attach(1);
  EXPECT_TRUE(wire::SendMessage(first.get(), message::Pack(Lease{1, {180 * kMiB, 20 * kMiB}})));
  auto granted = wire::ReceiveMessage(first.get(), kPatience);
  Grant grant;
  ASSERT_TRUE(granted && message::Unpack(granted->bytes, &grant) == wire::WireResult::kOk);
  ASSERT_EQ(granted->descriptors.size(), 2u);
  EXPECT_EQ(DeviceBytes(granted->descriptors[0], 180 * kMiB, "fill", 0x5e), 0);
  granted->descriptors.clear();

  wire::Descriptor second = Attach(2);
  EXPECT_TRUE(wire::SendMessage(second.get(), message::Pack(Lease{1, {160 * kMiB}})));
  auto question = wire::ReceiveMessage(first.get(), kPatience);
  Reclaim reclaim;
  ASSERT_TRUE(question && message::Unpack(question->bytes, &reclaim) == wire::WireResult::kOk);
  EXPECT_TRUE(wire::SendMessage(first.get(), message::Pack(Return{{grant.chunks[0].chunk}})));
  EXPECT_TRUE(wire::SendMessage(first.get(),
                                message::Pack(Reclaimed{reclaim.request, 180 * kMiB, 20 * kMiB})));
  auto answer = wire::ReceiveMessage(second.get(), kPatience);
  ASSERT_TRUE(answer && answer->descriptors.size() == 1);
  EXPECT_EQ(DeviceBytes(answer->descriptors[0], 160 * kMiB, "check", 0), 0);
}

// Memory of an idle session was moved to the host's: nobody reads it where it was, and it comes
// back as it was.
TEST_F(MemoryTest, WhatLeftForTheHostIsReadByNobody) {
  KeeperLimits limits{UINT64_MAX, UINT64_MAX, 0, 128 * kMiB};
  EXPECT_TRUE(wire::SendMessage(control.get(), message::Pack(limits)));
  while (state.swap_host_memory != 128 * kMiB) {
    auto packet = wire::ReceiveMessage(control.get(), kPatience);
    ASSERT_TRUE(packet && message::Unpack(packet->bytes, &state) == wire::WireResult::kOk);
  }
  wire::Descriptor first = Attach(1), second = Attach(2);
  for (auto* worker : {&first, &second}) {
    EXPECT_TRUE(wire::ReceiveMessage(worker->get(), kPatience).has_value());  // SwapWatch
  }
  auto chunks = GetChunks(first, {64 * kMiB, 64 * kMiB, 64 * kMiB});
  ASSERT_EQ(chunks.size(), 3u);
  for (const auto& chunk : chunks) EXPECT_EQ(DeviceBytes(chunk, 64 * kMiB, "fill", 0x5e), 0);
  chunks.clear();
  EXPECT_TRUE(wire::SendMessage(second.get(), message::Pack(Lease{1, {64 * kMiB}})));
  auto packet = wire::ReceiveMessage(first.get(), kPatience);
  Reclaim reclaim;
  ASSERT_TRUE(packet && message::Unpack(packet->bytes, &reclaim) == wire::WireResult::kOk);
  EXPECT_TRUE(wire::SendMessage(first.get(), message::Pack(Reclaimed{reclaim.request, 0, 0})));
  packet = wire::ReceiveMessage(first.get(), kPatience);
  SwapOut asked;
  ASSERT_TRUE(packet && message::Unpack(packet->bytes, &asked) == wire::WireResult::kOk);
  EXPECT_EQ(asked.chunks.size(), 1u);
  auto left = static_cast<uint32_t>(SwapAnswer::kLeft);
  EXPECT_TRUE(wire::SendMessage(first.get(), message::Pack(SwapLeft{asked.request, left})));
  packet = wire::ReceiveMessage(second.get(), kPatience);
  ASSERT_TRUE(packet && packet->descriptors.size() == 1);
  EXPECT_EQ(DeviceBytes(packet->descriptors[0], 64 * kMiB, "check", 0), 0);
  packet.reset();
  second.Reset();
  EXPECT_TRUE(wire::SendMessage(first.get(), message::Pack(SwapBack{2})));
  packet = wire::ReceiveMessage(first.get(), kPatience);
  ASSERT_TRUE(packet && packet->descriptors.size() == 1);
  EXPECT_EQ(DeviceBytes(packet->descriptors[0], 64 * kMiB, "check", 0x5e), 0);
}

}  // namespace
}  // namespace longwire::keeper
