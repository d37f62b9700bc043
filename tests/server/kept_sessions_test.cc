// What the warden keeps of sessions for the next daemon (server/protocol/kept_session.h).
#include "server/protocol/kept_session.h"
#include "tests/server/warden_fixture.h"

namespace longwire::warden {
namespace {

class KeptSessionsTest : public WardenTest {};

// One after the other, also while the daemon before is not seen to have gone yet.
TEST_F(KeptSessionsTest, ADaemonGetsWhatTheOneBeforeLeft) {
  Start();
  Started second = StartSession(7), first = StartSession(3);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  wire::Descriptor read_end(ends[0]), write_end(ends[1]);
  const int kept[] = {write_end.get()};
  for (const char* record : {"replaced", "the record"}) {
    ASSERT_TRUE(wire::SendMessage(daemon.get(), message::Pack(KeepSession{3, record}), {kept, 1}));
  }
  wire::Descriptor before = std::move(daemon);
  daemon = wire::ConnectLocal(options.socket);
  auto take = [&](uint64_t after, Started* started) {
    SessionTaken taken;
    Say(TakeSession{after + 100, after});
    EXPECT_TRUE(Hear(&taken, &started->files));
    EXPECT_EQ(taken.request, after + 100);
    started->message = taken.worker;
    return taken.record;
  };
  Started found;
  EXPECT_EQ(take(0, &found), "the record");
  EXPECT_EQ(found.message.session, 3u);
  EXPECT_EQ(found.message.pid, first.message.pid);
  ASSERT_EQ(found.files.size(), size_t{kWorkerDescriptors + 1});
  EXPECT_EQ(write(found.files.back().get(), "x", 1), 1);
  char told = 0;
  EXPECT_EQ(read(read_end.get(), &told, 1), 1);
  EXPECT_EQ(Command(found, "still here"), "still here");
  EXPECT_EQ(take(3, &found), "");
  EXPECT_EQ(found.message.session, 7u);
  take(7, &found);
  EXPECT_EQ(found.message.session, 0u);
  before.Reset();
  usleep(50'000);
  EXPECT_EQ(Command(second, "mine now"), "mine now");
}

TEST_F(KeptSessionsTest, ADaemonSaysHowLongItsWorkersAreKept) {
  Start();
  Started worker = StartSession(1);
  Say(SetGrace{0});
  daemon.Reset();
  EXPECT_TRUE(Dead(worker));
}

TEST_F(KeptSessionsTest, ADaemonIsToldOfWorkersThatEndedBeforeIt) {
  Start();
  Started worker = StartSession(5);
  ASSERT_TRUE(wire::SendMessage(daemon.get(), message::Pack(KeepSession{5, "the record"})));
  GetStatsNow();  // it has read that
  daemon.Reset();
  usleep(100'000);
  Command(worker, "crash");
  EXPECT_TRUE(Dead(worker));
  daemon = wire::ConnectLocal(options.socket);
  SessionTaken taken;
  ASSERT_TRUE(Eventually([&] {
    Say(TakeSession{1, 5});
    EXPECT_TRUE(Hear(&taken));
    return taken.worker.session != 0;
  }));
  EXPECT_EQ(taken.worker.session, 5u);
  EXPECT_NE(taken.worker.code, 0);
  EXPECT_NE(taken.worker.sentence.find("signal"), std::string::npos) << taken.worker.sentence;
  EXPECT_EQ(taken.record, "the record");
  Say(TakeSession{2, 0});
  EXPECT_TRUE(Hear(&taken));
  EXPECT_EQ(taken.worker.session, 0u) << "once";
}

// An upgrade replaces the file that the warden runs.
TEST_F(KeptSessionsTest, AReplacedWardenEndsWhenItHasNoSession) {
  const std::string program = testing::TempDir() + "/program-" + std::to_string(getpid());
  auto install = [&] {
    FILE* file = fopen((program + ".new").c_str(), "w");
    ASSERT_NE(file, nullptr);
    fclose(file);
    ASSERT_EQ(rename((program + ".new").c_str(), program.c_str()), 0);
  };
  install();
  options.own_program = OwnProgram(program);
  Start();
  Started worker = StartSession(1);
  install();
  GetStatsNow();
  usleep(50'000);
  EXPECT_FALSE(ended);
  EXPECT_EQ(Command(worker, "still here"), "still here");
  Say(KillWorker{1});
  EXPECT_TRUE(Eventually([&] { return ended.load(); }));
  unlink(program.c_str());
}

}  // namespace
}  // namespace longwire::warden
