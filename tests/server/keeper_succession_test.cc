// Keepers that follow each other on one device, with the table of loans and the ledger between
// them: the test plays the warden and the workers.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <memory>
#include <set>

#include "server/ledger/loan_table.h"
#include "tests/server/keeper_fixture.h"

namespace longwire::keeper {
namespace {

wire::Descriptor Again(int descriptor) {
  return wire::Descriptor(fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
}

class SuccessionTest : public KeeperTest {
 protected:
  struct Worker {
    wire::Descriptor ours, keepers;
    uint32_t tenant = 0;
  };

  void SetUp() override {
    ledger = TenantLedger::Create();
    loans = LoanTable::Create();
    ASSERT_TRUE(ledger && loans);
    ledger->SetLimit(1, 512 * kMiB);
    StartNext();
  }

  void TearDown() override {
    EndKeeper();
    EXPECT_EQ(device.count(), 0u);
  }

  void EndKeeper() {
    control.Reset();
    thread.join();
    keeper.reset();
    quota.reset();
  }

  void StartNext() {
    wire::Descriptor end;
    ASSERT_TRUE(wire::LocalPair(&control, &end));
    quota = std::make_unique<Quota>(*ledger, 0, true);
    own_loans = LoanTable::Map(Again(loans->descriptor()));
    PoolOptions options{.reserve = 64 * kMiB};
    options.quota = quota.get();
    options.loans = own_loans.get();
    keeper = std::make_unique<Keeper>(device, options, std::move(end));
    keeper->SetWardenVersion(kChargesSince);
    thread = std::thread([this] { keeper->Run(); });
  }

  // A worker that has greeted.
  Worker& Start(uint64_t number, uint32_t tenant = 0) {
    Worker& worker = workers[number];
    worker.tenant = tenant;
    EXPECT_TRUE(wire::LocalPair(&worker.ours, &worker.keepers));
    const int files[] = {worker.keepers.get()};
    EXPECT_TRUE(wire::SendMessage(control.get(), message::Pack(keeper::Attach{number, {}}), files));
    Say(control, Assign{number, tenant, {}});
    Say(worker.ours, Borrow{1, {message::kHelloToken, message::TokenOf(wire::SpokenVersions())}});
    EXPECT_TRUE(wire::ReceiveMessage(worker.ours.get(), milliseconds(5000)));
    return worker;
  }

  // The keeper ends, and the next one gets all workers but `without`.
  void Succeed(std::set<uint64_t> without = {}) {
    EndKeeper();
    StartNext();
    ++successions;
    Say(control, keeper::Succeed{successions, false});
    for (auto& [number, worker] : workers) {
      if (without.contains(number)) continue;
      const int files[] = {worker.keepers.get()};
      keeper::Attach attach{number, keeper::Again{worker.tenant, {}}};
      EXPECT_TRUE(wire::SendMessage(control.get(), message::Pack(attach), files));
    }
    Say(control, keeper::Succeed{successions, true});
    for (auto& [number, worker] : workers) {
      if (without.contains(number)) continue;
      Reattach ask;
      auto packet = wire::ReceiveMessage(worker.ours.get(), milliseconds(5000));
      ASSERT_TRUE(packet && message::Unpack(packet->bytes, &ask) == wire::WireResult::kOk);
      EXPECT_EQ(ask.keeper, successions);
    }
  }

  // The first worker was promised that much.
  Worker& StartPromised(uint64_t number, uint32_t tenant, uint64_t bytes) {
    Worker& worker = Start(number, tenant);
    Say(control, Assign{number, tenant, bytes});
    Promised promised;
    for (int i = 0; i < 100 && promised.worker == 0; ++i) {
      auto packet = wire::ReceiveMessage(control.get(), milliseconds(5000));
      if (packet) (void)message::Unpack(packet->bytes, &promised);
    }
    EXPECT_EQ(promised.worker, number);
    EXPECT_EQ(promised.code, kSuccess) << promised.sentence;
    return worker;
  }

  static uint64_t Free(const Worker& worker) {
    Say(worker.ours, GetInfo{9});
    auto packet = wire::ReceiveMessage(worker.ours.get(), milliseconds(5000));
    Info info;
    EXPECT_TRUE(packet && message::Unpack(packet->bytes, &info) == wire::WireResult::kOk);
    return info.free;
  }

  std::unique_ptr<TenantLedger> ledger;
  std::unique_ptr<LoanTable> loans, own_loans;
  std::unique_ptr<Quota> quota;
  std::map<uint64_t, Worker> workers;
  uint64_t successions = 0;
};

TEST_F(SuccessionTest, CountsWhatWorkersHaveAndLendsTheRest) {
  Worker& worker = Start(1);
  Answer had = Ask(worker.ours, {64 * kMiB, 128 * kMiB, 256 * kMiB});
  ASSERT_EQ(had.chunks.size(), 3u);
  for (int i = 0; i < 3; ++i) {
    Succeed();
    // From the first moment, before the worker has said anything.
    EXPECT_EQ(State([](const KeeperState&) { return true; }).leased, 448 * kMiB);
    Say(worker.ours, Held{successions,
                          false,
                          0,
                          {had.chunks[0].chunk, had.chunks[1].chunk, had.chunks[2].chunk}});
    EXPECT_EQ(Free(worker), (960 - 448) * kMiB);
  }
  EXPECT_EQ(Ask(worker.ours, {576 * kMiB}).refuse.code, kOutOfMemory);
  Answer more = Ask(worker.ours, {512 * kMiB});
  ASSERT_EQ(more.chunks.size(), 1u);
  for (const GrantedChunk& chunk : had.chunks) EXPECT_GT(more.chunks[0].chunk, chunk.chunk);
  Say(worker.ours, Return{{had.chunks[0].chunk, had.chunks[2].chunk}});
  EXPECT_EQ(Free(worker), (960 - 640) * kMiB);
}

TEST_F(SuccessionTest, WhatAWorkerDoesNotHaveIsTakenBack) {
  Worker& worker = Start(1, 1);
  Answer had = Ask(worker.ours, {64 * kMiB, 128 * kMiB});
  Say(worker.ours, Charge{8, 32 * kMiB, 32 * kMiB});
  ASSERT_TRUE(wire::ReceiveMessage(worker.ours.get(), milliseconds(5000)));
  EXPECT_EQ(ledger->charged(1), 224 * kMiB);
  Succeed();
  // Said to the one before, in vain: what counts is what the worker has.
  Say(worker.ours, Return{{had.chunks[1].chunk}});
  Say(worker.ours, Held{successions - 1, false, 0, {}});
  Say(worker.ours, Held{successions, false, 8 * kMiB, {had.chunks[1].chunk, 4711}});
  EXPECT_EQ(Free(worker), (512 - 128 - 8) * kMiB);  // of its tenant's limit
  EXPECT_EQ(ledger->charged(1), 136 * kMiB);
}

TEST_F(SuccessionTest, WhatWasPromisedStaysPromised) {
  Worker& worker = StartPromised(1, 1, 400 * kMiB);
  Worker& other = Start(2);
  Answer had = Ask(worker.ours, {100 * kMiB});
  for (int i = 0; i < 2; ++i) {
    // Before the worker has come, and without a word of the warden about it.
    Succeed();
    EXPECT_EQ(ledger->charged(1), 400 * kMiB);
    Say(other.ours, Held{successions, false, 0, {}});
    EXPECT_EQ(Free(other), (960 - 400) * kMiB);
    EXPECT_EQ(Ask(other.ours, {562 * kMiB}).refuse.code, kOutOfMemory);
    Say(worker.ours, Held{successions, false, 0, {had.chunks[0].chunk}});
    EXPECT_EQ(Free(worker), 412 * kMiB) << "of its tenant's limit, without what it has";
  }
  EXPECT_EQ(Ask(worker.ours, {300 * kMiB}).chunks.size(), 1u);
  EXPECT_EQ(ledger->charged(1), 400 * kMiB);
  Succeed({1});
  workers.erase(1);
  Say(other.ours, Held{successions, false, 0, {}});
  EXPECT_EQ(Free(other), 960 * kMiB);
  EXPECT_EQ(ledger->charged(1), 0u);
}

TEST_F(SuccessionTest, AWorkerThatEndedMeanwhileHasNothing) {
  Start(1, 1);
  Worker& other = Start(2, 2);
  Ask(workers[1].ours, {256 * kMiB});
  Answer had = Ask(other.ours, {64 * kMiB});
  Succeed({1});
  Say(other.ours, Held{successions, false, 0, {had.chunks[0].chunk}});
  EXPECT_EQ(Free(other), (960 - 64) * kMiB);
  EXPECT_EQ(ledger->charged(1), 0u);
  EXPECT_EQ(ledger->charged(2), 64 * kMiB);
}

TEST_F(SuccessionTest, AWorkerThatWasCutOffKeepsWhatItHas) {
  Worker& cut = Start(1);
  Worker& other = Start(2);
  Ask(cut.ours, {256 * kMiB});
  EndKeeper();
  shutdown(cut.keepers.get(), SHUT_RDWR);
  StartNext();
  ++successions;
  Say(control, keeper::Succeed{successions, false});
  wire::Descriptor process(static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0)));
  for (auto& [number, worker] : workers) {
    const int files[] = {worker.keepers.get(), process.get()};
    keeper::Attach attach{number, keeper::Again{0, {}}};
    EXPECT_TRUE(wire::SendMessage(control.get(), message::Pack(attach), files));
  }
  Say(control, keeper::Succeed{successions, true});
  ASSERT_TRUE(wire::ReceiveMessage(other.ours.get(), milliseconds(5000)));
  Say(other.ours, Held{successions, false, 0, {}});
  EXPECT_EQ(Free(other), (960 - 256) * kMiB);
  EXPECT_EQ(Ask(other.ours, {706 * kMiB}).refuse.code, kOutOfMemory);
}

TEST_F(SuccessionTest, SharedMemoryIsLentByTheDescriptorsThatWorkersKept) {
  Worker& owner = Start(1, 1);
  Worker& other = Start(2, 1);
  Worker& stranger = Start(3, 2);
  Answer had = Ask(owner.ours, {64 * kMiB});
  Say(owner.ours, Share{5, {had.chunks[0].chunk}});
  auto packet = wire::ReceiveMessage(owner.ours.get(), milliseconds(5000));
  Shared shared;
  ASSERT_TRUE(packet && message::Unpack(packet->bytes, &shared) == wire::WireResult::kOk);
  ASSERT_EQ(packet->descriptors.size(), 1u);
  EXPECT_EQ(pwrite(packet->descriptors[0].get(), "S", 1, 0), 1);
  Succeed();
  // A borrower that comes before the one that knows the token waits for it.
  Say(other.ours, Held{successions, false, 0, {}});
  Say(other.ours, Borrow{6, {shared.token[0], shared.token[1]}});
  Say(stranger.ours, Held{successions, false, 0, {}});
  HeldShare held{successions, {shared.token[0], shared.token[1]}, {had.chunks[0].chunk}};
  const int files[] = {packet->descriptors[0].get()};
  ASSERT_TRUE(wire::SendMessage(owner.ours.get(), message::Pack(held), files));
  Say(owner.ours, Held{successions, false, 0, {had.chunks[0].chunk}});
  for (int i = 0; i < 2; ++i) {  // the descriptor serves more than one
    Answer borrowed = Hear(other.ours);
    ASSERT_EQ(borrowed.chunks.size(), 1u);
    EXPECT_EQ(Content(borrowed.files[0]), 'S');
    Say(other.ours, Borrow{7, {shared.token[0], shared.token[1]}});
  }
  Hear(other.ours);
  Say(stranger.ours, Borrow{6, {shared.token[0], shared.token[1]}});
  EXPECT_EQ(Hear(stranger.ours).refuse.code, kInvalidValue);
  EXPECT_EQ(ledger->charged(1), 64 * kMiB);  // once
}

// Its greeting went to the keeper before, which did not read it, and is repeated when the next one
// asks what it has.
TEST_F(SuccessionTest, AWorkerThatGreetedInBetweenIsServed) {
  Borrow hello{1, {message::kHelloToken, message::TokenOf(wire::SpokenVersions())}};
  Worker& worker = workers[1];
  ASSERT_TRUE(wire::LocalPair(&worker.ours, &worker.keepers));
  Say(worker.ours, hello);
  Succeed();  // Reattach is the first that it gets
  Say(worker.ours, Held{successions, false, 0, {}});
  Say(worker.ours, hello);
  auto answer = wire::ReceiveMessage(worker.ours.get(), milliseconds(5000));
  ASSERT_TRUE(answer);
  EXPECT_TRUE(message::HelloIn(answer->bytes));
  EXPECT_EQ(Ask(worker.ours, {64 * kMiB}).chunks.size(), 1u);
}

TEST_F(SuccessionTest, OnlyWhoHasAChunkTellsOfItsToken) {
  Worker& owner = Start(1, 1);
  Worker& attacker = Start(2, 1);
  Worker& other = Start(3, 1);
  Answer had = Ask(owner.ours, {64 * kMiB});
  Succeed();
  wire::Descriptor own(static_cast<int>(syscall(SYS_memfd_create, "own", 0)));
  const int files[] = {own.get()};
  HeldShare forged{successions, {1, 2}, {had.chunks[0].chunk}};
  ASSERT_TRUE(wire::SendMessage(attacker.ours.get(), message::Pack(forged), files));
  Say(attacker.ours, Held{successions, false, 0, {}});
  Say(owner.ours, Held{successions, false, 0, {had.chunks[0].chunk}});
  Free(attacker);  // it was read
  Say(other.ours, Held{successions, false, 0, {}});
  Say(other.ours, Borrow{6, {1, 2}});
  EXPECT_EQ(Hear(other.ours).refuse.code, kInvalidValue);
}

}  // namespace
}  // namespace longwire::keeper
