// One host, front and placer on real members of etcd: who may open a session, once, and when its
// claim goes.
#include <gtest/gtest.h>

#include "server/etcd/testing/cluster.h"
#include "server/pool/front.h"
#include "server/pool/host.h"
#include "server/pool/keys.h"
#include "server/pool/placer.h"

namespace longwire::pool {
namespace {

using etcd_testing::Within;
using Clock = std::chrono::steady_clock;

constexpr uint64_t kGiB = uint64_t{1} << 30;
constexpr const char* kTicket = "a ticket of sixteen letters";

class Facts : public HostFacts {
 public:
  bool Describe(Capacity* capacity, std::string*) override {
    capacity->set_sessions_limit(2);
    for (int ordinal = 0; ordinal < devices; ++ordinal) {
      Device& device = *capacity->add_devices();
      device.set_ordinal(ordinal);
      device.set_uuid("gpu1-software-" + std::to_string(ordinal));
      device.set_total(8 * kGiB);
    }
    return true;
  }
  Load Loads() override { return {}; }
  std::optional<Warm> Warmth() override { return {}; }
  Claims Running() override {
    base::MutexLock lock(mutex);
    return running;
  }
  bool AreGone(const std::vector<uint64_t>&) override { return gone.load(); }
  size_t EndAll(const std::string&) override { return 0; }

  void Run(const std::string& number, const Claim& claim) {
    base::MutexLock lock(mutex);
    running[number] = claim;
  }

  int devices = 1;
  std::atomic<bool> gone{true};
  base::Mutex mutex;
  Claims running;
};

class PoolTest : public etcd_testing::Cluster {
 protected:
  void SetUp() override {
    Cluster::SetUp();
    options_.name = "gpu1";
    options_.address = "127.0.0.1:1";
    options_.state_file = folder_ + "/pool-host";
    Join();
  }
  void TearDown() override {
    Leave();
    Cluster::TearDown();
  }

  void Join() {
    std::string sentence;
    lease_ = std::make_unique<etcd::Lease>(*client_, 6);
    host_ = std::make_unique<HostPart>(*client_, *lease_, facts_, options_);
    front_ = std::make_unique<FrontPart>(*client_, *lease_, "gpu1");
    placer_ =
        std::make_unique<PlacerPart>(*client_, *lease_, "gpu1", scheduler::pool::Options{"pack"},
                                     TenantLimits{}, std::chrono::seconds(30), [] { return true; });
    ASSERT_TRUE(lease_->Start(&sentence) && host_->Start(&sentence) && front_->Start(&sentence) &&
                placer_->Start(&sentence))
        << sentence;
    ASSERT_TRUE(Within(20, [&] { return host_->joined(&sentence) && placer_->leads(); }))
        << sentence;
  }
  void Leave() {
    placer_->Stop();
    front_->Stop();
    host_->Stop();
    lease_->Stop();
  }

  HostOptions OptionsOfAnother() const {
    HostOptions options = options_;
    options.name = "gpu2";
    options.state_file += "-2";
    return options;
  }

  // Where the session was placed; a sentence where it was not.
  std::string Place(const std::string& number, const std::string& identity = "alice",
                    const std::string& ticket = kTicket, uint64_t bytes = kGiB) {
    Request request;
    request.set_tenant("research");
    request.set_identity(identity);
    request.set_devices(1);
    request.set_bytes(bytes);
    request.set_ticket_hash(HashOf(ticket));
    Answer answer;
    std::string sentence;
    auto result = front_->Place(number, request, Clock::now() + std::chrono::seconds(5), cancelled_,
                                &answer, &sentence);
    return result == FrontPart::Result::kPlaced ? answer.host() : sentence;
  }
  bool Admit(const std::string& number, const std::string& identity = "alice",
             const std::string& ticket = kTicket) {
    claim_.Clear();
    return host_->Admit(number, ticket, identity, &claim_, &sentence_, &again_);
  }
  std::string ClaimState(const std::string& number) {
    Claim claim;
    const std::string text = Get("longwire/claim/gpu1/" + number);
    return Decode(text, &claim) ? ClaimState_Name(claim.state()) : text;
  }
  uint32_t Sessions() {
    Capacity capacity;
    return Decode(Get("longwire/cap/gpu1"), &capacity) ? capacity.sessions() : 4711;
  }

  HostOptions options_;
  Facts facts_;
  std::unique_ptr<etcd::Lease> lease_;
  std::unique_ptr<HostPart> host_;
  std::unique_ptr<FrontPart> front_;
  std::unique_ptr<PlacerPart> placer_;
  std::atomic<bool> cancelled_{false};
  Claim claim_;
  std::string sentence_;
  bool again_ = false;
};

TEST_F(PoolTest, ATicketIsForOneClientAndOnce) {
  ASSERT_EQ(Place("aa"), "gpu1");
  EXPECT_FALSE(Admit("aa", "mallory")) << "with a stolen ticket";
  EXPECT_FALSE(again_);
  EXPECT_FALSE(Admit("aa", "alice", "another ticket, also long"));
  EXPECT_FALSE(Admit("bb")) << "which nobody has placed";
  EXPECT_EQ(ClaimState("aa"), "RESERVED");
  ASSERT_TRUE(Admit("aa")) << sentence_;
  EXPECT_EQ(claim_.bytes(), kGiB);
  EXPECT_EQ(claim_.devices_size(), 1);
  EXPECT_FALSE(Admit("aa")) << "a second time";
  EXPECT_TRUE(again_);
  host_->Opened("aa");
  EXPECT_TRUE(Within(5, [&] { return ClaimState("aa") == "OPEN"; }));
  EXPECT_FALSE(Admit("aa"));
}

// Whoever reads the directory may know of a host before its own question is answered.
TEST_F(PoolTest, WhoComesWhileTheHostJoinsWaits) {
  HostPart host(*client_, *lease_, facts_, OptionsOfAnother());
  std::string sentence;
  ASSERT_TRUE(host.Start(&sentence)) << sentence;
  EXPECT_FALSE(host.Admit("s1", kTicket, "alice", &claim_, &sentence, &again_));
  EXPECT_EQ(sentence, "there is no place for this session at this host any more");
}

TEST_F(PoolTest, WhoAsksWhileTheHostJoinsWaits) {
  HostPart host(*client_, *lease_, facts_, OptionsOfAnother());
  std::string sentence;
  ASSERT_TRUE(host.Start(&sentence)) << sentence;
  EXPECT_TRUE(host.AwaitJoined(&sentence)) << sentence;
}

// Nor may it, in its last moments, be there for the placer once more.
TEST_F(PoolTest, AHostThatEndsDoesNotJoinOnceMore) {
  Capacity capacity;
  Leave();
  ASSERT_TRUE(Decode(Get("longwire/cap/gpu1"), &capacity));
  EXPECT_EQ(capacity.incarnation(), 1u);
  std::string sentence;
  EXPECT_FALSE(host_->AwaitJoined(&sentence));
  EXPECT_EQ(sentence, "this host is not in the pool now: longwired ends");
}

TEST_F(PoolTest, WhoAsksAgainHasOnePlace) {
  ASSERT_EQ(Place("aa"), "gpu1");
  EXPECT_EQ(Place("aa"), "gpu1");
  EXPECT_EQ(Sessions(), 1u);
  EXPECT_NE(Place("aa", "mallory").find("is taken"), std::string::npos);
  EXPECT_NE(Place("aa", "alice", "another ticket, also long").find("is taken"), std::string::npos);
  EXPECT_EQ(Sessions(), 1u);
}

TEST_F(PoolTest, NoMoreIsPlacedThanThereIs) {
  ASSERT_EQ(Place("aa"), "gpu1");
  ASSERT_EQ(Place("bb"), "gpu1");
  EXPECT_NE(Place("cc").find("it has all of its 2 sessions"), std::string::npos);
  EXPECT_EQ(Sessions(), 2u);
}

TEST_F(PoolTest, AClaimGoesWhenItsWorkerHasGone) {
  ASSERT_EQ(Place("aa"), "gpu1");
  ASSERT_TRUE(Admit("aa"));
  host_->Opened("aa");
  facts_.gone = false;
  host_->Over("aa", {1});
  std::this_thread::sleep_for(std::chrono::seconds(1));
  EXPECT_EQ(Sessions(), 1u);
  facts_.gone = true;
  EXPECT_TRUE(Within(5, [&] { return Sessions() == 0; }));
  EXPECT_EQ(ClaimState("aa"), "-");
  EXPECT_EQ(Get("longwire/sess/aa"), "-");
}

TEST_F(PoolTest, AReservationThatNobodyUsesIsGivenBack) {
  Leave();
  options_.reservation = std::chrono::milliseconds(500);
  Join();
  ASSERT_EQ(Place("aa"), "gpu1");
  EXPECT_TRUE(Within(10, [&] { return Sessions() == 0; }));
  EXPECT_EQ(ClaimState("aa"), "-");
  EXPECT_FALSE(Admit("aa"));
}

TEST_F(PoolTest, AHostThatComesBackWritesWhatIsSo) {
  ASSERT_EQ(Place("aa"), "gpu1");
  ASSERT_EQ(Place("bb"), "gpu1");
  ASSERT_TRUE(Admit("aa"));
  Leave();
  // One session has survived; one was opened before there was a pool.
  facts_.Run("aa", claim_);
  Claim local;
  local.set_local(true);
  local.add_devices(0);
  facts_.Run("0-17", local);
  Join();
  EXPECT_EQ(ClaimState("aa"), "OPEN");
  EXPECT_EQ(ClaimState("bb"), "-");
  EXPECT_EQ(ClaimState("0-17"), "OPEN");
  EXPECT_EQ(Sessions(), 2u);
  EXPECT_FALSE(Admit("bb")) << "its place was given back";
  EXPECT_FALSE(Admit("aa"));
}

TEST_F(PoolTest, WhatEtcdHasLostIsWrittenAgain) {
  ASSERT_EQ(Place("aa"), "gpu1");
  ASSERT_TRUE(Admit("aa"));
  host_->Opened("aa");
  ASSERT_TRUE(Within(5, [&] { return ClaimState("aa") == "OPEN"; }));
  facts_.Run("aa", claim_);
  etcd::pb::DeleteRangeRequest request;
  etcd::pb::DeleteRangeResponse reply;
  request.set_key("longwire/claim/gpu1/aa");
  ASSERT_TRUE(client_->Delete(request, &reply, &sentence_));
  EXPECT_TRUE(Within(10, [&] { return ClaimState("aa") == "OPEN"; }));
  EXPECT_TRUE(Within(10, [&] { return host_->joined(&sentence_); })) << sentence_;
  EXPECT_EQ(Sessions(), 1u);
}

class PoolMovesTest : public PoolTest {
 protected:
  void SetUp() override {
    facts_.devices = 2;
    PoolTest::SetUp();
    ASSERT_EQ(Place("aa"), "gpu1");
    ASSERT_TRUE(Admit("aa")) << sentence_;
    ASSERT_EQ(Devices("aa"), "0");
    RunOn("aa", 0);
    host_->Opened("aa");
  }
  void RunOn(const std::string& number, int32_t device) {
    Claim claim = claim_;
    claim.clear_devices();
    claim.add_devices(device);
    facts_.Run(number, claim);
  }
  // Of its claim; and the host's sums have to be those of all claims.
  std::string Devices(const std::string& number) {
    Claim claim;
    std::string devices;
    if (!Decode(Get("longwire/claim/gpu1/" + number), &claim)) return "?";
    for (int32_t device : claim.devices()) devices += std::to_string(device);
    return devices;
  }
  std::string Bytes() {
    Capacity capacity;
    if (!Decode(Get("longwire/cap/gpu1"), &capacity)) return "?";
    std::string bytes;
    for (const Device& device : capacity.devices()) {
      bytes +=
          std::to_string(device.bytes() / kGiB) + "/" + std::to_string(device.sessions()) + " ";
    }
    return bytes;
  }
  void SignalMembers(int signal) {
    for (pid_t pid : pids_) kill(pid, signal);
  }
};

TEST_F(PoolMovesTest, ASessionHasBothDevicesUntilNothingIsLeftOnOne) {
  ASSERT_TRUE(host_->MayMove("aa", 1, &sentence_)) << sentence_;
  EXPECT_EQ(Devices("aa"), "01");
  EXPECT_EQ(Bytes(), "1/1 1/1 ");
  EXPECT_EQ(Sessions(), 1u);
  facts_.gone = false;
  RunOn("aa", 1);
  host_->Moved("aa", {7});
  std::this_thread::sleep_for(std::chrono::seconds(1));
  EXPECT_EQ(Devices("aa"), "01");
  facts_.gone = true;
  EXPECT_TRUE(Within(5, [&] { return Devices("aa") == "1"; })) << Devices("aa");
  EXPECT_EQ(Bytes(), "0/0 1/1 ");
  // And back, but it stays where it is after all.
  ASSERT_TRUE(host_->MayMove("aa", 0, &sentence_)) << sentence_;
  EXPECT_EQ(Bytes(), "1/1 1/1 ");
  host_->Moved("aa", {8});
  EXPECT_TRUE(Within(5, [&] { return Devices("aa") == "1"; })) << Devices("aa");
  EXPECT_EQ(Bytes(), "0/0 1/1 ");
}

TEST_F(PoolMovesTest, WhatIsPromisedToOthersIsNotItsToo) {
  ASSERT_EQ(Place("bb", "alice", kTicket, 8 * kGiB), "gpu1");
  ASSERT_EQ(Devices("bb"), "1");
  EXPECT_FALSE(host_->MayMove("aa", 1, &sentence_));
  EXPECT_NE(sentence_.find("has promised device 1 to others"), std::string::npos) << sentence_;
  EXPECT_FALSE(host_->MayMove("aa", 5, &sentence_)) << "there is none";
  EXPECT_FALSE(host_->MayMove("cc", 0, &sentence_)) << "nobody knows it";
  EXPECT_EQ(Devices("aa"), "0");
  EXPECT_EQ(Bytes(), "1/1 8/1 ");
}

TEST_F(PoolMovesTest, OneThatEndsWhileItMovesGivesBothBack) {
  ASSERT_TRUE(host_->MayMove("aa", 1, &sentence_)) << sentence_;
  host_->Over("aa", {6});
  std::this_thread::sleep_for(std::chrono::seconds(1));
  EXPECT_EQ(Devices("aa"), "01") << "there is another worker";
  host_->Moved("aa", {7});
  EXPECT_TRUE(Within(5, [&] { return Bytes() == "0/0 0/0 "; })) << Bytes();
  EXPECT_EQ(ClaimState("aa"), "-");
}

TEST_F(PoolMovesTest, WithoutEtcdNothingMoves) {
  ASSERT_TRUE(Within(5, [&] { return ClaimState("aa") == "OPEN"; }));
  SignalMembers(SIGSTOP);
  EXPECT_FALSE(host_->MayMove("aa", 1, &sentence_));
  EXPECT_NE(sentence_.find("the pool does not say whether it may"), std::string::npos) << sentence_;
  SignalMembers(SIGCONT);
  EXPECT_TRUE(Within(30, [&] { return host_->MayMove("aa", 1, &sentence_); })) << sentence_;
  host_->Moved("aa", {});
  EXPECT_TRUE(Within(10, [&] { return Devices("aa") == "0"; })) << Devices("aa");
  EXPECT_EQ(Bytes(), "1/1 0/0 ");
}

TEST_F(PoolMovesTest, AHostThatJoinsAnewSaysWhereItsSessionsAre) {
  Leave();
  RunOn("aa", 1);
  Join();
  EXPECT_EQ(Devices("aa"), "1");
  EXPECT_EQ(Bytes(), "0/0 1/1 ");
}

TEST_F(PoolTest, APlacerThatIsNotElectedAnyMorePlacesNothing) {
  std::string sentence;
  etcd::pb::DeleteRangeRequest request;
  etcd::pb::DeleteRangeResponse reply;
  request.set_key(std::string(kPlacer));
  ASSERT_TRUE(client_->Delete(request, &reply, &sentence));
  ASSERT_TRUE(Put(std::string(kPlacer), R"({"host":"other"})", &sentence));
  EXPECT_NE(Place("aa").find("did not answer in time"), std::string::npos);
  EXPECT_EQ(Sessions(), 0u);
}

}  // namespace
}  // namespace longwire::pool
