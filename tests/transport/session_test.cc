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
  for (const std::string& door : {options_.socket, config_.door()}) {
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

TEST_F(SessionTest, TheLocalDoorGivesTheWorkersOwnRings) {
  Program program;
  ASSERT_TRUE(program.Open(config_.door()));
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
  ASSERT_TRUE(local.Open(config_.door()));
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
  ASSERT_TRUE(local.Open(config_.door()));
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
  const uint32_t next = wire::kProtocolVersion + 1;
  EXPECT_FALSE(newer.Open(options_.socket, next));
  EXPECT_EQ(newer.reply.code, 803);
  EXPECT_EQ(newer.reply.sentence,
            "the client speaks protocol " + std::to_string(next) + ", this server protocol " +
                std::to_string(wire::kProtocolVersion) + ": upgrade longwired on the server");
  Program older;
  EXPECT_FALSE(older.Open(config_.door(), 0));
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

TEST_F(SessionTest, ProgramsOfOtherUsersAreRefusedAtBothDoors) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can be another user";
  // Nothing but the doors' own look at the peer is in the way.
  ASSERT_EQ(chmod(folder_.c_str(), 0755), 0);
  for (const std::string& door : {config_.door(), options_.socket}) {
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
  ASSERT_TRUE(local.Open(config_.door()));
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

// Execute by hand, to do it wrong.
class AttachTest : public SessionTest {
 protected:
  std::shared_ptr<grpc::Channel> channel_;
  transport::OpenSessionReply opened_;

  void Open() {
    channel_ = transport::OpenChannel(config_.listen(0), nullptr);
    wire::Writer writer;
    wire::OpenRequest wanted;
    wanted.lanes = 2;
    wanted.Encode(writer);
    transport::OpenSessionRequest request;
    request.set_request(writer.data(), writer.size());
    grpc::ClientContext context;
    auto status = transport::Transport::NewStub(channel_)->Open(&context, request, &opened_);
    ASSERT_TRUE(status.ok()) << status.error_message();
    ASSERT_NE(opened_.session(), 0u);
  }

  transport::Attach Right(uint64_t resume_position = 0) {
    transport::Attach attach;
    attach.session = opened_.session();
    std::memcpy(attach.token.data(), opened_.resume_token().data(), attach.token.size());
    attach.resume_position = resume_position;
    return attach;
  }

  void TakeToken(const std::string& body) {
    opened_.set_resume_token(body.substr(0, transport::kTokenBytes));
  }

  struct Answer {
    std::unique_ptr<transport::ClientStream> stream;
    uint32_t flags = 0;
    std::string body;
  };
  Answer Attach(const transport::Attach& attach, uint32_t epoch,
                const char* method = transport::kExecute) {
    Answer answer;
    answer.stream = transport::ClientStream::Connect(channel_, seconds(3), method);
    std::string body = EncodeAttach(attach);
    answer.stream->StartWrite({0, 0, epoch, transport::kFrameAttach},
                              std::as_bytes(std::span(body)), nullptr);
    answer.stream->StartRead();
    while (true) {
      auto event = answer.stream->Wait(Clock::now() + seconds(5));
      if (event == transport::MessageStream::Event::kWritten) continue;
      if (event == transport::MessageStream::Event::kRead) {
        answer.flags = answer.stream->received().header.flags;
        answer.body = ControlBody(answer.stream->received());
      }
      return answer;
    }
  }
};

TEST_F(AttachTest, OnlyTheRightTokenAttaches) {
  Open();
  transport::Attach wrong = Right();
  wrong.token[31] ^= std::byte{1};
  Answer answer = Attach(wrong, 1);
  EXPECT_EQ(answer.flags, transport::kFrameClosed);
  answer.stream->End(true);
  wrong = Right();
  wrong.session += 1;
  answer = Attach(wrong, 1);
  EXPECT_EQ(answer.flags, transport::kFrameClosed);
  answer.stream->End(true);
  answer = Attach(Right(), 1);
  EXPECT_EQ(answer.flags, transport::kFrameAttached);
  transport::Attached attached;
  EXPECT_EQ(DecodeAttached(std::as_bytes(std::span(answer.body)), &attached),
            wire::WireResult::kOk);
  answer.stream->End(true);
}

// A stream of bulk joins a session by the token of its own lane and by nothing else.
TEST_F(AttachTest, ALaneTakesItsOwnTokenOnly) {
  Open();
  ASSERT_EQ(opened_.transfer_tokens_size(), 2);
  auto right = [&](uint32_t lane) {
    transport::Attach attach = Right();
    attach.lane = lane;
    std::memcpy(attach.token.data(), opened_.transfer_tokens(static_cast<int>(lane) - 1).data(),
                attach.token.size());
    return attach;
  };
  auto answered = [&](const transport::Attach& attach, const char* method) {
    Answer answer = Attach(attach, 1, method);
    answer.stream->End(true);
    return answer.flags;
  };
  transport::Attach log_token = Right();
  log_token.lane = 1;
  EXPECT_EQ(answered(log_token, transport::kTransfer), transport::kFrameClosed);
  transport::Attach neighbour = right(2);
  neighbour.lane = 1;
  EXPECT_EQ(answered(neighbour, transport::kTransfer), transport::kFrameClosed);
  transport::Attach other_session = right(1);
  other_session.session += 1;
  EXPECT_EQ(answered(other_session, transport::kTransfer), transport::kFrameClosed);
  for (uint32_t nowhere : {3u, 0xffffffffu}) {
    transport::Attach beyond = right(2);
    beyond.lane = nowhere;
    EXPECT_EQ(answered(beyond, transport::kTransfer), transport::kFrameClosed) << nowhere;
  }
  EXPECT_EQ(answered(right(1), transport::kExecute), transport::kFrameClosed);
  EXPECT_EQ(answered(Right(), transport::kTransfer), transport::kFrameClosed);
  EXPECT_EQ(answered(right(1), transport::kTransfer), transport::kFrameAttached);
  EXPECT_EQ(answered(right(2), transport::kTransfer), transport::kFrameAttached);
}

TEST_F(AttachTest, AnOlderEpochIsRefused) {
  Open();
  Answer first = Attach(Right(), 5);
  ASSERT_EQ(first.flags, transport::kFrameAttached);
  TakeToken(first.body);
  Answer second = Attach(Right(), 5);
  EXPECT_NE(second.flags, transport::kFrameAttached);
  first.stream->End(true);
  second.stream->End(true);
}

TEST_F(AttachTest, APositionFromTheFutureIsRefused) {
  Open();
  Answer answer = Attach(Right(1 << 20), 1);
  EXPECT_NE(answer.flags, transport::kFrameAttached);
  answer.stream->End(true);
}

TEST_F(AttachTest, AHalfDeadConnectionIsReplaced) {
  Open();
  Answer first = Attach(Right(), 1);
  ASSERT_EQ(first.flags, transport::kFrameAttached);
  TakeToken(first.body);
  Answer second = Attach(Right(), 2);
  EXPECT_EQ(second.flags, transport::kFrameAttached);
  first.stream->StartRead();
  EXPECT_EQ(first.stream->Wait(Clock::now() + seconds(5)),
            transport::MessageStream::Event::kBroken);
  first.stream->End(true);
  second.stream->End(true);
}

TEST_F(AttachTest, ASessionThatNobodyAttachesToIsFreed) {
  Open();
  EXPECT_EQ(warden_->living(), 1u);
  EXPECT_TRUE(Eventually([&] { return warden_->living() == 0; }, milliseconds(5000)));
}

TEST_F(AttachTest, ABrokenConnectionIsHeldForItsGraceOnly) {
  Open();
  Answer answer = Attach(Right(), 1);
  ASSERT_EQ(answer.flags, transport::kFrameAttached);
  answer.stream->End(true);
  std::this_thread::sleep_for(milliseconds(200));
  EXPECT_EQ(warden_->living(), 1u);
  EXPECT_TRUE(NothingLeft());
}

TEST_F(AttachTest, RandomBytesOnThePortHarmNobody) {
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
