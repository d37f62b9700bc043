// The warden with a stand-in worker and a keeper over a fake device: the test is the daemon.

#include <signal.h>

#include <filesystem>
#include <set>

#include "tests/server/warden_fixture.h"
#include "wire/rings/ring.h"

namespace longwire::warden {
namespace {

// The folder that the worker's driver would write to, its name alone.
std::string CompiledFolder(const std::string& path) {
  std::error_code problem;
  std::filesystem::path folder = std::filesystem::canonical(path, problem);
  return problem ? "none" : folder.filename().string();
}

TEST_F(WardenTest, KernelsAreCompiledForEachTenantApart) {
  options.compile_cache = testing::TempDir() + "/compiled-" + std::to_string(getpid());
  options.warm_workers = 1;
  Start();
  for (uint64_t session = 1; session <= 4; ++session) {
    // Started ahead or not, a worker's folder is its tenant's.
    std::string tenant = session % 2 == 0 ? "even" : "odd";
    while (session == 3 && GetStatsNow().sessions.size() < 4) usleep(1000);
    Started worker = StartSession(session, {}, {0}, tenant);
    std::string path = Command(worker, "environment CUDA_CACHE_PATH");
    EXPECT_EQ(CompiledFolder(path), "=" + tenant);
    EXPECT_EQ(Command(worker, "environment CUDA_CACHE_DISABLE"), "unset");
    if (session != 4) continue;
    EXPECT_EQ(Command(worker, "exit"), "no answer");
    WorkerDied died;
    EXPECT_TRUE(Hear(&died));
    EXPECT_EQ(CompiledFolder(path), "none") << "a worker's link ends with it";
  }
  std::filesystem::remove_all(options.compile_cache);
}

TEST_F(WardenTest, WithoutAFolderNothingCompiledIsKept) {
  Start();
  Started worker = StartSession(1, {"CUDA_CACHE_DISABLE=0", "CUDA_CACHE_PATH=/tmp"}, {0}, "odd");
  EXPECT_EQ(Command(worker, "environment CUDA_CACHE_DISABLE"), "1");
  EXPECT_EQ(Command(worker, "environment CUDA_CACHE_PATH"), "unset");
}

TEST_F(WardenTest, HandsOverAWorkerWithItsDescriptors) {
  Start();
  Started worker = StartSession(1);
  ASSERT_EQ(worker.message.code, 0) << worker.message.sentence;
  ASSERT_EQ(worker.files.size(), size_t{kWorkerDescriptors});
  EXPECT_EQ(worker.message.session, 1u);
  ASSERT_EQ(worker.message.keepers.size(), 1u);
  EXPECT_GT(worker.message.keepers[0].pid, 0);
  EXPECT_FALSE(worker.message.warm);
  EXPECT_EQ(Command(worker, "write-ring"), "write-ring");
  wire::RingConsumer consumer(wire::RingMemory::Map(worker.files[kUpRing].Release()));
  ASSERT_EQ(consumer.Available().size(), 8u);
  EXPECT_EQ(std::memcmp(consumer.Available().data(), "in ring!", 8), 0);
}

TEST_F(WardenTest, AWorkerHasOnlyItsDescriptorsAndNoPrivileges) {
  Start();
  Started one = StartSession(1);
  Started both = StartSession(2, {}, {1, 0});
  EXPECT_EQ(both.message.keepers.size(), 2u);
  auto count = [](const std::string& list) { return std::ranges::count(list, ' '); };
  EXPECT_EQ(count(Command(one, "descriptors")), 7) << Command(one, "descriptors");
  EXPECT_EQ(count(Command(both, "descriptors")), 8);
  EXPECT_EQ(Command(one, "privileges"), "1");
}

TEST_F(WardenTest, OnlyTheDriversVariablesReachAWorker) {
  Start();
  Started worker = StartSession(1, {"CUDA_DEVICE_MAX_CONNECTIONS=3", "LD_PRELOAD=/tmp/x.so",
                                    "CUDA_INJECTION64_PATH=/tmp/x.so", "CUDA_MODULE_LOADING"});
  EXPECT_EQ(Command(worker, "environment CUDA_DEVICE_MAX_CONNECTIONS"), "3");
  EXPECT_EQ(Command(worker, "environment LD_PRELOAD"), "unset");
  EXPECT_EQ(Command(worker, "environment CUDA_INJECTION64_PATH"), "unset");
  EXPECT_EQ(Command(worker, "environment CUDA_MODULE_LOADING"), "unset");
}

TEST_F(WardenTest, KillsAWorkerAndTells) {
  Start();
  Started worker = StartSession(1);
  Started other = StartSession(2);
  Say(KillWorker{1});
  WorkerDied died;
  ASSERT_TRUE(Hear(&died));
  EXPECT_EQ(died.session, 1u);
  EXPECT_EQ(died.pid, worker.message.pid);
  EXPECT_EQ(died.signal, SIGKILL);
  EXPECT_EQ(died.exit_code, -1);
  EXPECT_TRUE(Dead(worker));
  EXPECT_EQ(Command(other, "hello"), "hello");
  Say(KillWorker{1});  // again, and one that never was: nothing happens
  Say(KillWorker{99});
  EXPECT_EQ(GetStatsNow().sessions.size(), 1u);
}

TEST_F(WardenTest, SeesACrashAndAnExit) {
  Start();
  Started first = StartSession(1);
  EXPECT_EQ(Command(first, "crash"), "no answer");
  WorkerDied died;
  ASSERT_TRUE(Hear(&died));
  EXPECT_EQ(died.signal, SIGSEGV);
  Started second = StartSession(2);
  Command(second, "exit");
  ASSERT_TRUE(Hear(&died));
  EXPECT_EQ(died.exit_code, 5);
  EXPECT_NE(died.sentence.find("code 5"), std::string::npos);
  EXPECT_EQ(StartSession(1).message.code, 0);  // the id is free again
}

TEST_F(WardenTest, ARestartedDaemonFindsItsWorkers) {
  Start();
  Started before = StartSession(41);
  daemon = wire::ConnectLocal(options.socket);
  usleep(100'000);
  before.files.clear();
  Say(ListWorkers{5});
  Started found;
  ASSERT_TRUE(Hear(&found.message, &found.files));
  EXPECT_EQ(found.message.session, 41u);
  EXPECT_EQ(found.message.pid, before.message.pid);
  ASSERT_EQ(found.files.size(), size_t{kWorkerDescriptors});
  ListEnd end;
  ASSERT_TRUE(Hear(&end));
  EXPECT_EQ(end.request, 5u);
  EXPECT_EQ(end.count, 1u);
  EXPECT_EQ(Command(found, "still here"), "still here");
}

TEST_F(WardenTest, KillsWorkersThatNobodyTakesOver) {
  options.orphan_time = std::chrono::seconds(0);
  Start();
  Started worker = StartSession(1);
  daemon.Reset();
  EXPECT_TRUE(Dead(worker));
}

TEST_F(WardenTest, AnotherDaemonsWorkersAreNotListed) {
  Start();
  Started mine = StartSession(1);
  wire::Descriptor first = std::move(daemon);
  daemon = wire::ConnectLocal(options.socket);
  Say(ListWorkers{1});
  ListEnd end;
  ASSERT_TRUE(Hear(&end));
  EXPECT_EQ(end.count, 0u);
}

TEST_F(WardenTest, KeepsAWarmWorkerReady) {
  options.warm_workers = 1;
  Start();
  auto wait_for_warm = [&](int32_t device) {
    return Eventually([&] { return WarmWorkers(device) != 0; });
  };
  ASSERT_TRUE(wait_for_warm(0));
  ASSERT_TRUE(wait_for_warm(1));
  EXPECT_TRUE(StartSession(1, {}, {0}).message.warm);
  EXPECT_FALSE(StartSession(2, {"CUDA_FORCE_PTX_JIT=1"}, {1}).message.warm);
  EXPECT_FALSE(StartSession(3, {}, {0, 1}).message.warm) << "it needs another device too";
  EXPECT_FALSE(StartSession(4, {}, {}).message.warm) << "all devices";
  EXPECT_TRUE(StartSession(5, {}, {1}).message.warm) << "nobody took it in between";
  ASSERT_TRUE(wait_for_warm(0));
  Started again = StartSession(6, {}, {0});
  EXPECT_TRUE(again.message.warm);
  EXPECT_EQ(Command(again, "hello"), "hello");
}

TEST_F(WardenTest, KeepsAsManyWarmAsEachDeviceShallHave) {
  options.warm_workers = 2;
  options.warm_workers_of = {{1, 0}};
  Start();
  auto warm = [&] {
    std::multiset<int32_t> devices;
    for (const SessionStats& session : GetStatsNow().sessions) devices.insert(session.device);
    return devices;
  };
  Eventually([&] { return warm().size() >= 2; });
  EXPECT_EQ(warm(), (std::multiset<int32_t>{0, 0}));
  EXPECT_FALSE(StartSession(1, {}, {1}).message.warm);
}

TEST_F(WardenTest, ListsEveryDeviceFromTheStart) {
  Start();
  Stats stats = GetStatsNow();
  ASSERT_EQ(stats.devices.size(), 2u);
  for (int32_t device : {0, 1}) {
    EXPECT_EQ(stats.devices[device].device, device);
    EXPECT_GT(stats.devices[device].keeper_pid, 0);
    EXPECT_EQ(stats.devices[device].total, uint64_t{1} << 30);
  }
}

TEST_F(WardenTest, ADeadKeeperIsStartedAgainWithoutASession) {
  Start();
  int32_t before = GetStatsNow().devices[1].keeper_pid;
  kill(before, SIGKILL);
  auto replaced = [&] {
    const DeviceStats now = GetStatsNow().devices[1];
    return now.keeper_pid != before && now.keeper_pid != 0 && now.total != 0;
  };
  EXPECT_TRUE(Eventually(replaced));
}

TEST_F(WardenTest, ADeviceThatDoesNotOpenLeavesTheOthers) {
  options.driver = "second-broken";
  Start();
  Stats stats = GetStatsNow();
  EXPECT_GT(stats.devices[0].total, 0u);
  EXPECT_EQ(stats.devices[1].total, 0u);
  EXPECT_EQ(StartSession(1).message.code, 0);
}

TEST_F(WardenTest, RefusesWhatItCannotStart) {
  Start();
  EXPECT_EQ(StartSession(1, {}, {7}).message.code, 1);
  EXPECT_EQ(StartSession(1, {}, {0, 0}).message.code, 1);
  EXPECT_EQ(StartSession(0).message.code, 1);
  EXPECT_EQ(StartSession(1).message.code, 0);
  Started twice = StartSession(1);
  EXPECT_EQ(twice.message.code, 1);
  EXPECT_FALSE(twice.message.sentence.empty());
  EXPECT_TRUE(twice.files.empty());
  Say(StartWorker{9, 9, "/tmp/other.so", {0}, {}, true, "", {}});
  Started refused;
  ASSERT_TRUE(Hear(&refused.message));
  EXPECT_EQ(refused.message.code, 1);
}

TEST_F(WardenTest, AWorkerProgramThatIsMissingIsADeath) {
  options.worker_program = "/nonexistent/longwire-worker";
  Start();
  Started worker = StartSession(1);
  WorkerDied died;
  ASSERT_TRUE(Hear(&died));
  EXPECT_EQ(died.exit_code, 127);
}

TEST_F(WardenTest, AKeeperThatDiedHasASuccessorForItsWorkers) {
  options.warm_workers = 1;
  Start();
  Started first = StartSession(1);
  int32_t keeper = first.message.keepers[0].pid;
  ASSERT_TRUE(Eventually([&] { return WarmWorkers(0) == 1; }));
  for (uint64_t session = 2; session < 5; ++session) {
    kill(keeper, SIGKILL);
    ASSERT_TRUE(Eventually([&] {
      const DeviceStats now = GetStatsNow().devices[0];
      return now.keeper_pid != keeper && now.keeper_pid != 0;
    }));
    EXPECT_EQ(GetStatsNow().devices[0].total, uint64_t{1} << 30);  // as it was, or is
    keeper = GetStatsNow().devices[0].keeper_pid;
    EXPECT_EQ(Command(first, "keeper"), "a keeper");
    Started next = StartSession(session);
    EXPECT_EQ(next.message.code, 0) << next.message.sentence;
    EXPECT_EQ(Command(next, "keeper"), "a keeper");
  }
}

TEST_F(WardenTest, SaysWhyADeviceDoesNotOpen) {
  options.driver = "broken";
  Warden warden(options);
  std::string sentence;
  EXPECT_EQ(warden.OpenDevices(&sentence), 999);
  EXPECT_EQ(sentence, "the fake device is broken");
}

TEST_F(WardenTest, ServesAtTheSocketThatItIsGiven) {
  given = wire::ListenLocal(options.socket);
  Start();
  EXPECT_EQ(StartSession(1).message.code, 0);
}

TEST_F(WardenTest, RefusesASocketWhereNobodyLooksForIt) {
  given = wire::ListenLocal(options.socket);
  options.socket += "-configured";
  std::string sentence;
  EXPECT_FALSE(Warden(options).Listen(&sentence, std::move(given)));
  EXPECT_NE(sentence.find(options.socket), std::string::npos) << sentence;
}

TEST_F(WardenTest, GarbageEndsThatConnectionOnly) {
  Start();
  Started worker = StartSession(1);
  for (int length : {1, 4, 11, 1000, 150'000}) {
    wire::Descriptor hostile = wire::ConnectLocal(options.socket);
    std::vector<std::byte> garbage(length, std::byte{0xee});
    EXPECT_TRUE(wire::SendMessage(hostile.get(), garbage));
    bool closed = false;
    EXPECT_FALSE(wire::ReceiveMessage(hostile.get(), milliseconds(5000), &closed));
    EXPECT_TRUE(closed);
  }
  EXPECT_EQ(Command(worker, "hello"), "hello");
  EXPECT_EQ(GetStatsNow().driver, "fake");
}

TEST_F(WardenTest, OnDemandEndsWhenNobodyNeedsIt) {
  options.on_demand = true;
  options.idle_end = std::chrono::seconds(1);
  Start();
  Started worker = StartSession(1);
  usleep(1'500'000);
  EXPECT_FALSE(ended);
  Say(KillWorker{1});
  WorkerDied died;
  ASSERT_TRUE(Hear(&died));
  daemon.Reset();
  EXPECT_TRUE(Eventually([&] { return ended.load(); }));
}

}  // namespace
}  // namespace longwire::warden
