// The rules by which the streams' calls are issued.
#include <gtest/gtest.h>

#include "server/worker/testing/test_session.h"

namespace longwire::worker::testing {
namespace {

constexpr uint64_t kOne = 11, kTwo = 12, kLegacy = 13;

void Record(TestSession& session, uint64_t stream, uint64_t event, uint64_t version) {
  calls::lwEventRecord record;
  record.event = event;
  record.version = version;
  session.Send(record, stream);
}

void WaitFor(TestSession& session, uint64_t stream, uint64_t event, uint64_t version) {
  calls::lwStreamWaitEvent wait;
  wait.event = event;
  wait.version = version;
  session.Send(wait, stream);
}

void Want(TestSession& session, uint64_t stream, uint64_t position) {
  calls::lwStreamWanted want;
  want.stream = stream;
  want.position = position;
  session.Send(want);
}

void CreateEvent(TestSession& session, uint64_t event) {
  calls::lwEventCreate create;
  create.event = event;
  session.Send(create);
}

// Holds a stream's calls in the worker: a host function that has not run.
uint64_t Hold(TestSession& session, uint64_t stream, uint64_t ticket) {
  calls::lwHostFunction host;
  host.ticket = ticket;
  return session.Send(host, stream);
}

void LetGo(TestSession& session, uint64_t ticket) {
  calls::lwHostFunctionDone done;
  done.ticket = ticket;
  session.Send(done);
}

// Two streams, and a function to launch in them.
struct TwoStreams : TestSession {
  TwoStreams() {
    CreateStream(kOne);
    CreateStream(kTwo);
    LoadFunction();
  }
};

TEST(Order, CallsOfAStreamThatCouldNotBeMadeAreRefusedAndOver) {
  TestSession session;
  calls::lwHostFunction host;
  uint64_t position = session.Send(host, kOne);
  session.Expect(wire::DownKind::kError, [&](const DownRecord& record) {
    return record.header.position == position && record.header.code == CUDA_ERROR_INVALID_HANDLE;
  });
  session.ExpectProgress(kOne, position);
}

TEST(Order, ProgressComesWhenTheStreamDrained) {
  TestSession session;
  session.CreateStream(kOne);
  session.Launch(kOne, 1);
  uint64_t last = session.Launch(kOne, 2);
  session.ExpectProgress(kOne, last);
  EXPECT_LT(session.driver.IndexOf("launch s1 1"), session.driver.IndexOf("launch s1 2"));
}

TEST(Order, NoProgressBeforeTheDeviceGotThere) {
  TestSession session;
  session.CreateStream(kOne);
  session.driver.StopStream(1);
  uint64_t last = session.Launch(kOne, 1);
  session.Until([&] { return session.driver.IndexOf("launch s1 1") >= 0; }, "the launch");
  EXPECT_TRUE(session.Quiet(wire::DownKind::kProgress));
  session.driver.RunStream(1);
  session.ExpectProgress(kOne, last);
}

// Also where all of it was read and issued at once.
TEST(Order, ProgressComesAtEachWantedPlace) {
  TwoStreams session;
  CreateEvent(session, 21);
  session.driver.StopStream(1);
  session.driver.StopStream(2);
  Record(session, kTwo, 21, 1);
  uint64_t first = session.Launch(kOne, 1);
  Want(session, kOne, first);
  WaitFor(session, kOne, 21, 1);
  uint64_t second = session.Launch(kOne, 2);
  Want(session, kOne, second);
  session.Until([&] { return session.driver.IndexOf("launch s1 2") >= 0; }, "the launches");
  session.driver.RunStream(1);
  session.ExpectProgress(kOne, first);
  EXPECT_TRUE(session.Quiet(wire::DownKind::kProgress));
  session.driver.RunStream(2);
  session.ExpectProgress(kOne, second);
}

TEST(Order, LegacyCallsWaitForBlockingStreams) {
  TestSession session;
  session.CreateStream(kOne, StreamKind::kBlocking);
  session.CreateStream(kTwo, StreamKind::kNonBlocking);
  session.CreateStream(kLegacy, StreamKind::kLegacy);
  session.LoadFunction();
  Hold(session, kOne, 5);
  session.Launch(kOne, 1);
  session.Launch(kLegacy, 2);
  session.Launch(kOne, 3);
  session.Launch(kTwo, 4);
  session.Expect(wire::DownKind::kHostFunction);
  session.Until([&] { return session.driver.IndexOf("launch s2 4") >= 0; }, "the free stream");
  EXPECT_EQ(session.driver.IndexOf("launch s0 2"), -1);
  LetGo(session, 5);
  session.Until([&] { return session.driver.IndexOf("launch s1 3") >= 0; }, "the rest");
  EXPECT_LT(session.driver.IndexOf("launch s1 1"), session.driver.IndexOf("launch s0 2"));
  EXPECT_LT(session.driver.IndexOf("launch s0 2"), session.driver.IndexOf("launch s1 3"));
}

TEST(Order, FullStreamHoldsOnlyItself) {
  TwoStreams session;
  session.driver.StopStream(1);
  uint64_t last = 0;
  constexpr int kLaunches = 2000;
  for (int i = 0; i < kLaunches; ++i) last = session.Launch(kOne, 1);
  uint64_t other = session.Launch(kTwo, 2);
  session.ExpectProgress(kTwo, other);
  auto issued = [&] {
    int count = 0;
    for (auto& line : session.driver.log()) count += line == "launch s1 1";
    return count;
  };
  EXPECT_LE(issued(), static_cast<int>(wire::kMaxUnfinishedPerStream));
  session.driver.RunStream(1);
  session.ExpectProgress(kOne, last);
  EXPECT_EQ(issued(), kLaunches);
}

TEST(Order, WaitIsHeldUntilItsRecordWasIssued) {
  TestSession session;
  session.CreateStream(kOne);
  session.CreateStream(kTwo);
  CreateEvent(session, 21);
  Hold(session, kOne, 5);
  Record(session, kOne, 21, 1);
  WaitFor(session, kTwo, 21, 1);
  session.Launch(kTwo, 2);
  session.Expect(wire::DownKind::kHostFunction);
  EXPECT_EQ(session.driver.IndexOf("wait s2"), -1);
  LetGo(session, 5);
  session.Until([&] { return session.driver.IndexOf("launch s2 2") >= 0; }, "the waiting launch");
  EXPECT_LT(session.driver.IndexOf("record s1"), session.driver.IndexOf("wait s2"));
  EXPECT_LT(session.driver.IndexOf("wait s2"), session.driver.IndexOf("launch s2 2"));
}

TEST(Order, WaitMeansTheRecordBeforeItNotANewerOne) {
  TestSession session;
  session.CreateStream(kOne);
  session.CreateStream(kTwo);
  CreateEvent(session, 21);
  Record(session, kOne, 21, 1);
  Hold(session, kTwo, 5);
  WaitFor(session, kTwo, 21, 1);
  uint64_t last = session.Launch(kTwo, 2);
  session.Expect(wire::DownKind::kHostFunction);
  // The newer record never finishes; the wait names the older one.
  session.driver.StopStream(1);
  Record(session, kOne, 21, 2);
  session.Until([&] { return session.driver.log().back() == "record s1"; }, "the newer record");
  LetGo(session, 5);
  session.ExpectProgress(kTwo, last);
}

void Pass(TestSession& session, uint64_t event, uint64_t version) {
  calls::lwEventPass pass;
  pass.event = event;
  pass.version = version;
  session.Send(pass);
}

TEST(Order, AWaitMayComeBeforeItsRecord) {
  TwoStreams session;
  CreateEvent(session, 21);
  WaitFor(session, kTwo, 21, 1);
  uint64_t last = session.Launch(kTwo, 2);
  EXPECT_TRUE(session.Quiet(wire::DownKind::kProgress));
  EXPECT_EQ(session.driver.IndexOf("launch s2 2"), -1);
  Record(session, kOne, 21, 1);
  session.ExpectProgress(kTwo, last);
  EXPECT_LT(session.driver.IndexOf("record s1"), session.driver.IndexOf("wait s2"));
  EXPECT_LT(session.driver.IndexOf("wait s2"), session.driver.IndexOf("launch s2 2"));
}

TEST(Order, AVersionMayComeWithoutARecord) {
  TwoStreams session;
  CreateEvent(session, 21);
  WaitFor(session, kOne, 21, 1);
  WaitFor(session, kTwo, 21, 1);
  session.Launch(kOne, 1);
  uint64_t last = session.Launch(kTwo, 2);
  EXPECT_TRUE(session.Quiet(wire::DownKind::kProgress));
  Pass(session, 21, 1);
  session.ExpectProgress(kTwo, last);
  session.Until([&] { return session.driver.IndexOf("launch s1 1") >= 0; }, "the other launch");
  EXPECT_EQ(session.driver.IndexOf("wait s1"), -1);
  EXPECT_EQ(session.driver.IndexOf("wait s2"), -1);
}

TEST(Order, ARecordIsWaitedForAlsoBehindAVersionWithoutOne) {
  TwoStreams session;
  CreateEvent(session, 21);
  Record(session, kOne, 21, 1);
  WaitFor(session, kTwo, 21, 2);
  Pass(session, 21, 2);
  WaitFor(session, kTwo, 21, 1);
  uint64_t last = session.Launch(kTwo, 2);
  session.ExpectProgress(kTwo, last);
  EXPECT_GE(session.driver.IndexOf("wait s2"), 0);
}

TEST(Order, StreamIsDestroyedAfterItsCalls) {
  TestSession session;
  session.CreateStream(kOne);
  session.LoadFunction();
  session.driver.StopStream(1);
  session.Launch(kOne, 1);
  calls::lwStreamDestroy destroy;
  destroy.stream = kOne;
  session.Send(destroy);
  session.Until([&] { return session.driver.IndexOf("launch s1 1") >= 0; }, "the launch");
  EXPECT_TRUE(session.Quiet(wire::DownKind::kProgress));
  EXPECT_EQ(session.driver.IndexOf("destroy s1"), -1);
  session.driver.RunStream(1);
  session.Until([&] { return session.driver.IndexOf("destroy s1") >= 0; }, "the destroy");
  EXPECT_EQ(session.session->streams.Find(kOne), nullptr);
}

// Each part of a copy has a marker of its own; those before the last one stand for the copy, too.
TEST(Order, AnUnloadWaitsForACopyInParts) {
  TestSession session;
  session.CreateStream(kOne);
  session.LoadFunction();
  session.driver.StopStream(1);
  std::vector<std::byte> memory(3 * Staging::kMaxBlockBytes);
  calls::lwCopyToHost copy;
  copy.place.address = reinterpret_cast<uint64_t>(memory.data());
  copy.place.width_bytes = copy.place.pitch = copy.bytes = memory.size();
  copy.place.rows = copy.place.height = copy.place.slices = 1;
  copy.transfer = 31;
  uint64_t position = session.Send(copy, kOne);
  calls::lwModuleUnload unload;
  unload.library = session.session->libraries.All().front()->id;
  session.Send(unload);
  session.Until([&] { return session.driver.IndexOf("download s1") >= 0; }, "the copy");
  EXPECT_TRUE(session.Quiet(wire::DownKind::kProgress));
  EXPECT_EQ(session.session->libraries.size(), 1u);
  session.driver.RunStream(1);
  session.ExpectProgress(kOne, position);
  session.Until([&] { return session.session->libraries.size() == 0; }, "the unloading");
}

TEST(Order, ContextEndsAfterItsModules) {
  TestSession session;
  session.CreateStream(kOne);
  session.LoadFunction();
  session.driver.hold_unloads = true;
  calls::lwModuleUnload unload;
  unload.library = session.session->libraries.All().front()->id;
  session.Send(unload);
  session.Until([&] { return session.session->libraries.All().empty(); }, "the unloading");
  calls::lwContextDestroy destroy;
  destroy.context = TestSession::kContext;
  session.Send(destroy);
  EXPECT_TRUE(session.Quiet(wire::DownKind::kReply));
  EXPECT_EQ(session.driver.IndexOf("destroy s1"), -1);
  session.driver.hold_unloads = false;
  session.Until([&] { return session.driver.IndexOf("destroy s1") >= 0; }, "the context's end");
  EXPECT_LT(session.driver.IndexOf("unload"), session.driver.IndexOf("destroy s1"));
}

TEST(Order, FunctionIsLoadedOnceAndHoldsOnlyItsStream) {
  TestSession session;
  session.CreateStream(kOne);
  session.CreateStream(kTwo);
  CreateEvent(session, 21);
  session.LoadFunction();
  session.driver.hold_function_loads = true;
  session.Launch(kOne, 1);
  uint64_t last = session.Launch(kOne, 2);
  Record(session, kTwo, 21, 1);
  session.Until([&] { return session.driver.IndexOf("record s2") >= 0; }, "the other stream");
  EXPECT_EQ(session.driver.IndexOf("launch s1 1"), -1);
  session.driver.hold_function_loads = false;
  session.ExpectProgress(kOne, last);
  EXPECT_EQ(session.driver.function_loads, 1);
}

// By its own thread.
void LoadModule(TestSession& session) {
  std::byte image[8] = {};
  calls::lwCopyData data;
  data.transfer = 950;
  data.data = image;
  session.Send(data);
  calls::lwModuleLoad load;
  load.library = 951;
  load.transfer = 950;
  load.bytes = sizeof(image);
  session.Send(load, 0, 0, 3);
}

TEST(Order, SlowLoadOfOneThreadDoesNotHoldAnother) {
  TestSession session;
  session.CreateStream(kOne);
  session.LoadFunction();
  session.driver.hold_loads = true;
  LoadModule(session);
  uint64_t last = session.Launch(kOne, 1);
  session.ExpectProgress(kOne, last);
  EXPECT_TRUE(session.Quiet(wire::DownKind::kReply));
  session.driver.hold_loads = false;
  EXPECT_EQ(session.Expect(wire::DownKind::kReply).header.code, 0);
}

// The driver would wait for the kernel, and keep everybody from the context meanwhile.
TEST(Order, ALoadWaitsForKernelsThatMayWaitForMirroredMemory) {
  TwoStreams session;
  std::byte memory[64] = {};
  calls::lwMirrorAdd mirror;
  mirror.mirror = 77;
  mirror.address = reinterpret_cast<uint64_t>(memory);
  mirror.bytes = sizeof(memory);
  session.Send(mirror, kOne);
  session.driver.StopStream(1);
  const uint64_t first = session.Launch(kOne, 1);
  session.Until([&] { return session.driver.IndexOf("launch s1 1") >= 0; }, "the kernel");
  LoadModule(session);
  const uint64_t behind = session.Launch(kTwo, 2);
  ASSERT_TRUE(session.Quiet(wire::DownKind::kReply));
  EXPECT_EQ(session.driver.IndexOf("launch s2 2"), -1) << "natively it waits for the driver, too";
  session.driver.RunStream(1);
  session.ExpectProgress(kOne, first);
  EXPECT_EQ(session.Expect(wire::DownKind::kReply).header.code, 0);
  session.ExpectProgress(kTwo, behind);
}

// Two events that a stream has reached: the answer to the time between them.
CUresult TimeBetweenEvents(TestSession& session) {
  session.CreateStream(kOne);
  for (uint64_t event : {21, 22}) {
    calls::lwEventCreate create;
    create.event = event;
    session.Send(create);
    Record(session, kOne, event, 1);
  }
  session.ExpectProgress(kOne, session.Launch(kOne, 0));
  calls::lwEventElapsed elapsed;
  elapsed.start = 21;
  elapsed.end = 22;
  elapsed.start_version = elapsed.end_version = 1;
  return static_cast<CUresult>(session.ExpectReply(session.Send(elapsed)).header.code);
}

// The record of an event runs a moment after what reports that it was reached.
TEST(Order, TimesBetweenEventsAreWaitedFor) {
  TestSession session;
  session.driver.not_elapsed = 5;
  EXPECT_EQ(TimeBetweenEvents(session), CUDA_SUCCESS);
}

// A thread that did not run for longer than the worker is patient has asked only once.
TEST(Order, TimesBetweenEventsAreAskedAgainAfterAStall) {
  TestSession session;
  session.driver.not_elapsed = 1;
  session.driver.not_elapsed_ms = 150;
  EXPECT_EQ(TimeBetweenEvents(session), CUDA_SUCCESS);
}

}  // namespace
}  // namespace longwire::worker::testing
