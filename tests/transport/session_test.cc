// Sessions through every layer: what works, who is refused, what ends what.
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "link/transport/grpc_stream.h"
#include "proto/transport.grpc.pb.h"
#include "tests/transport/session_fixture.h"

namespace longwire::daemon {
namespace {

TEST_F(SessionTest, CarriesBytesThroughEveryLayer) {
  Program program;
  ASSERT_TRUE(program.Open(options_.socket)) << program.reply.sentence;
  EXPECT_EQ(program.reply.devices.at(0).name, "Fake Device");
  EXPECT_NE(program.reply.session, 0u);
  std::vector<std::string> roles;
  for (const auto& process : program.reply.processes) roles.push_back(process.role);
  EXPECT_EQ(roles, (std::vector<std::string>{"longwired", "longwire-worker", "longwire-keeper",
                                             "longwire-link"}));
  for (size_t bytes : {1, 8, 4096, 5000, 1 << 20, 3 << 20}) {
    ASSERT_TRUE(program.Echo(std::string(bytes, static_cast<char>(bytes)))) << bytes;
  }
  program.socket.Reset();
  EXPECT_TRUE(NothingLeft());
}

TEST_F(SessionTest, LanesCarryBytesBesideTheLog) {
  for (const std::string& door : {options_.socket, config_.local_socket()}) {
    Program program;
    program.wanted_lanes = 3;
    ASSERT_TRUE(program.Open(door)) << program.reply.sentence;
    EXPECT_EQ(program.reply.lanes, 3u);
    std::vector<std::thread> threads;
    for (Logs& lane : program.lanes) {
      threads.emplace_back([&lane] {
        for (size_t bytes : {8, 5000, 700'000}) {
          EXPECT_TRUE(lane.Echo(std::string(bytes, static_cast<char>(bytes >> 3)))) << bytes;
        }
      });
    }
    EXPECT_TRUE(program.Echo("not behind them"));
    for (std::thread& thread : threads) thread.join();
    auto sessions = table_->List();
    ASSERT_EQ(sessions.size(), 1u);
    EXPECT_GE(sessions[0]->bytes_up(), 3u * 700'000);
    program.socket.Reset();
    EXPECT_TRUE(NothingLeft());
  }
}

// A session's handshake costs one connection; its lanes cost one when they are used.
TEST_F(SessionTest, ALaneThatIsNotUsedHasNoConnection) {
  Program program;
  program.wanted_lanes = 2;
  ASSERT_TRUE(program.Open(options_.socket)) << program.reply.sentence;
  ASSERT_TRUE(program.Echo("a call"));
  ASSERT_TRUE(program.lanes[1].Echo("a piece"));
  auto sessions = table_->List();
  ASSERT_EQ(sessions.size(), 1u);
  EXPECT_EQ(sessions[0]->lane(1).epoch(), 0u);
  EXPECT_EQ(sessions[0]->lane(2).epoch(), 1u);
}

TEST_F(SessionTest, RoundTripTime) {
  Program program;
  ASSERT_TRUE(program.Open(options_.socket));
  std::vector<double> times;
  for (int i = 0; i < 2000; ++i) {
    auto start = Clock::now();
    ASSERT_TRUE(program.Echo("a call of some sixty-four bytes, as most of them are, more or less"));
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
  }
  std::sort(times.begin(), times.end());
  std::printf("there and back: median %.1f us, p90 %.1f us, p99 %.1f us\n", times[1000],
              times[1800], times[1980]);
}

TEST_F(SessionTest, TheLocalSocketGivesTheWorkersOwnRings) {
  Program program;
  ASSERT_TRUE(program.Open(config_.local_socket()));
  ASSERT_TRUE(program.Echo("without a relay"));
  auto sessions = table_->List();
  ASSERT_EQ(sessions.size(), 1u);
  EXPECT_TRUE(sessions[0]->client().local());
  EXPECT_EQ(sessions[0]->bytes_up(), 15u);
  program.socket.Reset();
  EXPECT_TRUE(NothingLeft());
}

TEST_F(SessionTest, AProgramThatGoesWhileOthersStay) {
  Program stays, goes, local;
  ASSERT_TRUE(stays.Open(options_.socket));
  ASSERT_TRUE(goes.Open(options_.socket));
  ASSERT_TRUE(local.Open(config_.local_socket()));
  EXPECT_EQ(warden_->living(), 3u);
  goes.socket.Reset();
  EXPECT_TRUE(Eventually([&] { return warden_->living() == 2; }));
  EXPECT_TRUE(stays.Echo("still here"));
  EXPECT_TRUE(local.Echo("here too"));
}

TEST_F(SessionTest, AWorkersDeathEndsItsSessionOnly) {
  Program dies, stays, local;
  ASSERT_TRUE(dies.Open(options_.socket));
  ASSERT_TRUE(stays.Open(options_.socket));
  ASSERT_TRUE(local.Open(config_.local_socket()));
  warden_->LetDie(dies.reply.session);
  EXPECT_TRUE(Eventually([&] { return dies.down_memory->closed(); }));
  EXPECT_EQ(dies.down_memory->close_code(), 719u);
  EXPECT_EQ(dies.LastWords(), "its worker ended by signal 11");
  EXPECT_TRUE(stays.Echo("unharmed"));
  warden_->LetDie(local.reply.session);
  EXPECT_TRUE(Eventually([&] { return local.down_memory->closed(); }));
  EXPECT_EQ(local.down_memory->close_code(), 719u);
  EXPECT_EQ(local.LastWords(), "its worker ended by signal 11");
  EXPECT_TRUE(stays.Echo("unharmed"));
}

TEST_F(SessionTest, RefusalsHaveASentence) {
  Program newer;
  const uint32_t next = wire::kBuiltVersions.newest + 1;
  EXPECT_FALSE(newer.Open(config_.local_socket(), {next, next + 1}));
  EXPECT_EQ(newer.reply.code, 803);
  EXPECT_EQ(newer.reply.sentence, "the client speaks protocol " + std::to_string(next) + " to " +
                                      std::to_string(next + 1) + ", this server " +
                                      wire::VersionsText(wire::kBuiltVersions) +
                                      ": upgrade longwired on the server");
  Program older;
  EXPECT_FALSE(older.Open(config_.local_socket(), {1, 1}));
  EXPECT_NE(older.reply.sentence.find("upgrade Longwire on the client"), std::string::npos);
  for (auto mood :
       {FakeWarden::Mood::kRefuse, FakeWarden::Mood::kBrokenReply, FakeWarden::Mood::kDieInOpen}) {
    warden_->set_mood(mood);
    Program program;
    EXPECT_FALSE(program.Open(options_.socket));
    EXPECT_NE(program.reply.code, 0);
    EXPECT_FALSE(program.reply.sentence.empty());
  }
  EXPECT_EQ(table_->failed(), 5u);
  EXPECT_TRUE(NothingLeft());
}

TEST_F(SessionTest, ProgramsOfOtherUsersAreRefusedAtBothSockets) {
  ASSERT_EQ(geteuid(), 0u) << "only root can be another user";
  // Only the sockets' own check of the peer refuses it.
  ASSERT_EQ(chmod(folder_.c_str(), 0755), 0);
  for (const std::string& door : {config_.local_socket(), options_.socket}) {
    ASSERT_EQ(chmod(door.c_str(), 0666), 0);
    bool connected = false, opened = false;
    std::thread stranger([&] {
      constexpr uid_t kKeep = static_cast<uid_t>(-1), kNobody = 65534;
      // The raw call: it changes this thread alone.
      ASSERT_EQ(syscall(SYS_setresuid, kKeep, kNobody, kKeep), 0);
      connected = wire::ConnectLocal(door).valid();
      opened = Program().Open(door);
    });
    stranger.join();
    EXPECT_TRUE(connected) << door;
    EXPECT_FALSE(opened) << door;
  }
  EXPECT_TRUE(NothingLeft());
}

TEST_F(SessionTest, AProgramThatGoesWhileItsSessionOpens) {
  warden_->set_mood(FakeWarden::Mood::kSilent);
  Program remote, local;
  std::thread first([&] { EXPECT_FALSE(remote.Open(options_.socket)); });
  EXPECT_TRUE(Eventually([&] { return warden_->living() == 1; }));
  shutdown(remote.socket.get(), SHUT_RDWR);
  first.join();
  EXPECT_TRUE(NothingLeft());
}

TEST_F(SessionTest, TheServersEndIsTold) {
  Program program, local;
  ASSERT_TRUE(program.Open(options_.socket));
  ASSERT_TRUE(local.Open(config_.local_socket()));
  ASSERT_TRUE(program.Echo("attached"));
  StopDaemon();
  EXPECT_TRUE(Eventually([&] { return program.down_memory->closed(); }));
  EXPECT_EQ(program.down_memory->close_code(), 719u);
  EXPECT_EQ(program.LastWords(), "the server shuts down");
  EXPECT_TRUE(local.down_memory->closed());
  EXPECT_EQ(local.LastWords(), "the server shuts down");
}

TEST_F(SessionTest, AServerThatIsNotThereIsToldInTime) {
  StopDaemon();
  auto start = Clock::now();
  Program program;
  EXPECT_FALSE(program.Open(options_.socket));
  EXPECT_LT(Clock::now() - start, seconds(4));
  EXPECT_EQ(program.reply.code, 100);
  EXPECT_NE(program.reply.sentence.find("nothing listens at 127.0.0.1:"), std::string::npos)
      << program.reply.sentence;
}

TEST_F(SessionTest, RandomBytesOnThePortHarmNobody) {
  Program program;
  ASSERT_TRUE(program.Open(options_.socket));
  for (int i = 0; i < 20; ++i) {
    int client = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(config::ListenAddresses(config_)[0].port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(connect(client, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    std::string noise(4096, '\0');
    for (size_t k = 0; k < noise.size(); ++k) noise[k] = static_cast<char>(k * 7919 * (i + 1) >> 5);
    EXPECT_GT(send(client, noise.data(), noise.size(), MSG_NOSIGNAL), 0);
    close(client);
  }
  EXPECT_TRUE(program.Echo("still served"));
}

}  // namespace
}  // namespace longwire::daemon
