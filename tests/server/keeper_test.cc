// The keeper's loop over a fake device; the workers are partly real processes that die.

#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cerrno>

#include "tests/server/keeper_fixture.h"

namespace longwire::keeper {
namespace {

TEST_F(KeeperTest, TellsTheWardenAboutTheDevice) {
  KeeperState state = State([](const KeeperState&) { return true; });
  EXPECT_EQ(state.device_name, "Fake device");
  EXPECT_EQ(state.total, 1024 * kMiB);
  EXPECT_EQ(state.lendable, 960 * kMiB);
}

// An end of file sets no errno: what an earlier call left there must not say "try again".
TEST(Keeper, SeesThatItsWardenIsGoneWhateverFailedBefore) {
  FakeDevice device(1024 * kMiB, 2 * kMiB);
  wire::Descriptor control, end;
  ASSERT_TRUE(wire::LocalPair(&control, &end));
  Keeper keeper(device, PoolOptions{.reserve = 64 * kMiB}, std::move(end));
  // Neither a state to be sent nor one that nobody read: both would set errno.
  bool open = keeper.RunOnce(milliseconds(0));
  EXPECT_TRUE(open && wire::ReceiveMessage(control.get(), milliseconds(1000)));
  control.Reset();
  for (int i = 0; i < 20 && open; ++i) {
    errno = EAGAIN;
    open = keeper.RunOnce(milliseconds(0));
  }
  EXPECT_FALSE(open);
}

TEST_F(KeeperTest, LendsClearedMemory) {
  wire::Descriptor worker = Attach(1);
  Answer answer = Ask(worker, {2 * kMiB, 64 * kMiB});
  ASSERT_EQ(answer.chunks.size(), 2u);
  EXPECT_EQ(answer.chunks[1].bytes, 64 * kMiB);
  EXPECT_EQ(Content(answer.files[0]), 0);
  Say(worker, GetInfo{9});
  auto packet = wire::ReceiveMessage(worker.get(), milliseconds(5000));
  Info info;
  ASSERT_TRUE(packet && message::Unpack(packet->bytes, &info) == wire::WireResult::kOk);
  EXPECT_EQ(info.request, 9u);
  EXPECT_EQ(info.free, 894 * kMiB);
  EXPECT_EQ(info.total, 1024 * kMiB);
  EXPECT_EQ(info.granularity, 2 * kMiB);
}

TEST_F(KeeperTest, AGrantOfManyChunksComesInSeveralPackets) {
  wire::Descriptor worker = Attach(1);
  Answer answer = Ask(worker, std::vector<uint64_t>(200, 2 * kMiB));
  EXPECT_EQ(answer.chunks.size(), 200u);
  EXPECT_EQ(answer.files.size(), 200u);
}

TEST_F(KeeperTest, EndOfFileBringsEverythingBackAndTheNextSessionSeesZeros) {
  std::vector<uint64_t> sizes(10, 64 * kMiB);
  {
    wire::Descriptor worker = Attach(1);
    Answer answer = Ask(worker, sizes);
    ASSERT_EQ(answer.files.size(), 10u);
    for (auto& file : answer.files) EXPECT_EQ(pwrite(file.get(), "S", 1, 0), 1);
  }
  KeeperState state = State([](const KeeperState& s) { return s.idle >= 640 * kMiB; });
  EXPECT_EQ(state.leased, 0u);
  wire::Descriptor next = Attach(2);
  Answer answer = Ask(next, sizes);
  ASSERT_EQ(answer.files.size(), 10u);
  for (auto& file : answer.files) EXPECT_EQ(Content(file), 0);
  EXPECT_LE(device.creates, 11);  // one is created ahead, if there is time for it
}

TEST_F(KeeperTest, MemoryOfAWorkerIsNotLentWhileItsProcessLives) {
  pid_t pid = fork();
  if (pid == 0) {
    while (true) pause();
  }
  wire::Descriptor process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  wire::Descriptor worker = Attach(1, process.get());
  ASSERT_EQ(Ask(worker, {800 * kMiB}).chunks.size(), 1u);
  worker.Reset();
  wire::Descriptor other = Attach(2);
  Say(other, Lease{1, {800 * kMiB}});
  EXPECT_FALSE(Hear(other, milliseconds(200)).answered);  // it waits
  kill(pid, SIGKILL);
  EXPECT_EQ(Hear(other).chunks.size(), 1u);
  waitpid(pid, nullptr, 0);
}

TEST_F(KeeperTest, AKilledProcessGivesBackThoughItsSocketIsStillOpenElsewhere) {
  pid_t pid = fork();
  if (pid == 0) {
    while (true) pause();
  }
  wire::Descriptor process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  wire::Descriptor worker = Attach(1, process.get());
  ASSERT_EQ(Ask(worker, {800 * kMiB}).chunks.size(), 1u);
  kill(pid, SIGKILL);
  KeeperState state = State([](const KeeperState& s) { return s.leased == 0 && s.idle > 0; });
  EXPECT_EQ(state.idle, 800 * kMiB);
  waitpid(pid, nullptr, 0);
}

TEST_F(KeeperTest, RefusesWhatItDoesNotHave) {
  wire::Descriptor worker = Attach(1);
  Answer answer = Ask(worker, {uint64_t{1} << 63});
  EXPECT_TRUE(answer.answered);
  EXPECT_EQ(answer.refuse.code, kOutOfMemory);
  EXPECT_EQ(answer.refuse.request, 7u);
  EXPECT_EQ(answer.refuse.free, 960 * kMiB);
  EXPECT_FALSE(answer.refuse.sentence.empty());
  EXPECT_EQ(Ask(worker, {2 * kMiB}).chunks.size(), 1u);
}

TEST_F(KeeperTest, SaysThatOthersUseTheDevice) {
  device.others = 512 * kMiB;
  auto socket = Attach(1);
  Answer answer = Ask(socket, {400 * kMiB, 400 * kMiB});
  EXPECT_EQ(answer.refuse.code, kOutOfMemory);
  EXPECT_EQ(answer.refuse.sentence,
            "the driver has no 419430400 bytes more (error 2), though 1006632960 are free here: "
            "contexts, and whoever uses the device beside this server, have 536870912");
}

// The driver gets the memory of a process back after its end, and not at once.
class KeeperAfterAnEndTest : public KeeperTest {
 protected:
  // A session that asks for more than the driver has again.
  wire::Descriptor AskBehindAnEnd() {
    auto first = Attach(1);
    EXPECT_EQ(Ask(first, {512 * kMiB}).refuse.code, kSuccess);
    device.others = 512 * kMiB;
    first.Reset();
    State([](const KeeperState& state) { return state.leased == 0; });
    auto second = Attach(2);
    Say(second, Lease{7, {768 * kMiB}});  // of another size: what is idle goes to the driver first
    return second;
  }
};

TEST_F(KeeperAfterAnEndTest, WaitsForWhatTheDriverIsJustGettingBack) {
  auto second = AskBehindAnEnd();
  EXPECT_FALSE(Hear(second, milliseconds(300)).answered);
  device.others = 0;
  EXPECT_EQ(Hear(second).chunks.size(), 1u);
}

TEST_F(KeeperAfterAnEndTest, WaitsForThatNoLongerThanItCanTake) {
  auto second = AskBehindAnEnd();
  Answer answer = Hear(second, milliseconds(10'000));
  EXPECT_EQ(answer.refuse.code, kOutOfMemory);
  // And then whoever asks is refused at once.
  auto begun = std::chrono::steady_clock::now();
  EXPECT_EQ(Ask(second, {768 * kMiB}).refuse.code, kOutOfMemory);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, milliseconds(1500));
}

TEST_F(KeeperTest, AFailedExportIsRefusedAndLendsNothing) {
  wire::Descriptor worker = Attach(1);
  device.fail_export = 100;
  Answer answer = Ask(worker, std::vector<uint64_t>(150, 2 * kMiB));
  EXPECT_EQ(answer.chunks.size(), 64u);  // the first packet was on its way
  EXPECT_EQ(answer.refuse.code, kOutOfMemory);
  EXPECT_EQ(answer.refuse.free, 960 * kMiB);
  EXPECT_EQ(Ask(worker, std::vector<uint64_t>(150, 2 * kMiB)).chunks.size(), 150u);
}

TEST_F(KeeperTest, OthersAreServedWhileMemoryIsCleared) {
  wire::Descriptor holder = Attach(1);
  ASSERT_EQ(Ask(holder, {64 * kMiB}).chunks.size(), 1u);
  device.hold_zero_from = 0;
  wire::Descriptor waiting = Attach(2);
  Say(waiting, Lease{1, {2 * kMiB}});
  Say(holder, GetInfo{3});
  EXPECT_TRUE(wire::ReceiveMessage(holder.get(), milliseconds(2000)).has_value());
  EXPECT_FALSE(Hear(waiting, milliseconds(50)).answered);
  device.hold_zero_from = UINT64_MAX;
  EXPECT_EQ(Hear(waiting).chunks.size(), 1u);
}

TEST_F(KeeperTest, ASmallLeaseDoesNotWaitForALargeOne) {
  device.hold_zero_from = 512 * kMiB;
  wire::Descriptor large = Attach(1);
  Say(large, Lease{1, {512 * kMiB}});
  wire::Descriptor small = Attach(2);
  EXPECT_EQ(Ask(small, {64 * kMiB}).chunks.size(), 1u);
  EXPECT_FALSE(Hear(large, milliseconds(50)).answered);
  device.hold_zero_from = UINT64_MAX;
  EXPECT_EQ(Hear(large).chunks.size(), 1u);
}

TEST_F(KeeperTest, AWorkerThatDiesInTheMiddleOfALeaseLeavesNothingBehind) {
  device.hold_zero_from = 0;
  wire::Descriptor worker = Attach(1);
  Say(worker, Lease{1, std::vector<uint64_t>(20, 2 * kMiB)});
  State([](const KeeperState& s) { return s.leased == 40 * kMiB; });
  worker.Reset();
  State([](const KeeperState& s) { return s.leased == 0; });
  device.hold_zero_from = UINT64_MAX;
  KeeperState state = State([](const KeeperState& s) { return s.scrub_pending == 0; });
  EXPECT_EQ(state.idle, 40 * kMiB);
  EXPECT_TRUE(state.workers.empty());
}

TEST_F(KeeperTest, AWorkerThatNeverReadsBlocksNobody) {
  wire::Descriptor silent = Attach(1);
  // Answers fill its socket long before the requests are all answered.
  for (int i = 0; i < 20; ++i) {
    (void)wire::SendMessage(silent.get(), message::Pack(Lease{1, std::vector<uint64_t>(20, 1)}));
  }
  wire::Descriptor other = Attach(2);
  EXPECT_EQ(Ask(other, {2 * kMiB}).chunks.size(), 1u);
}

TEST_F(KeeperTest, GarbageEndsTheConnectionAndNothingElse) {
  const std::vector<std::byte> lease = message::Pack(Lease{1, {2 * kMiB, 2 * kMiB}});
  std::vector<std::vector<std::byte>> packets;
  for (size_t length = 1; length < lease.size(); ++length) {
    packets.emplace_back(lease.begin(), lease.begin() + length);
  }
  for (size_t i = 0; i < lease.size(); ++i) {
    packets.push_back(lease);
    packets.back()[i] ^= std::byte{0xff};
  }
  packets.emplace_back(100'000, std::byte{0xff});
  packets.push_back(message::Pack(keeper::Attach{1, {}}));
  packets.push_back(message::Pack(Return{{0, 1, UINT64_MAX}}));
  uint64_t number = 10;
  for (const auto& packet : packets) {
    wire::Descriptor hostile = Attach(number++);
    (void)wire::SendMessage(hostile.get(), packet);
  }
  wire::Descriptor good = Attach(number);
  EXPECT_EQ(Ask(good, {2 * kMiB}).chunks.size(), 1u);
}

TEST_F(KeeperTest, DescriptorsThatAWorkerSendsAreClosed) {
  wire::Descriptor worker = Attach(1);
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  const int files[] = {pipe_ends[1]};
  ASSERT_TRUE(wire::SendMessage(worker.get(), message::Pack(GetInfo{1}), files));
  close(pipe_ends[1]);
  ASSERT_TRUE(wire::ReceiveMessage(worker.get(), milliseconds(5000)).has_value());
  char byte = 0;
  EXPECT_EQ(read(pipe_ends[0], &byte, 1), 0);  // end of file: no writer is left
  close(pipe_ends[0]);
}

}  // namespace
}  // namespace longwire::keeper
