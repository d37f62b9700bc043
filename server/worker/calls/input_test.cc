// Bad input: the worker answers an error or ends the session with a sentence; it never crashes.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "longwire/for_each_call.h"
#include "server/worker/testing/test_session.h"

namespace longwire::worker::testing {
namespace {

constexpr uint64_t kOne = 11;

void ExpectOver(TestSession& session, const char* sentence) {
  DownRecord error = session.Expect(wire::DownKind::kError);
  EXPECT_TRUE((error.header.flags & wire::kSessionOver) != 0);
  EXPECT_NE(error.Text(4).find(sentence), std::string::npos) << error.Text(4);
  session.Until([&] { return session.over.load(); }, "the session's end");
  EXPECT_TRUE(session.down->closed());
}

TEST(Input, RecordOfImpossibleSizeEndsTheSession) {
  TestSession session;
  wire::RecordHeader header{};
  header.bytes = 3;
  session.Append(std::as_bytes(std::span(&header, 1)));
  ExpectOver(session, "impossible size");
}

TEST(Input, UnknownCallEndsTheSession) {
  TestSession session;
  session.SendRaw(60000, {});
  ExpectOver(session, "does not know");
}

TEST(Input, CutArgumentsEndTheSession) {
  TestSession session;
  session.CreateStream(kOne);
  std::byte few[3] = {};
  session.SendRaw(static_cast<uint16_t>(CallId::lwLaunch), few, kOne);
  ExpectOver(session, "cannot be decoded");
}

TEST(Input, UnknownStreamIsAnError) {
  TestSession session;
  session.Launch(999, 1);
  EXPECT_EQ(session.Expect(wire::DownKind::kError).header.code, CUDA_ERROR_INVALID_HANDLE);
  EXPECT_FALSE(session.over);
}

TEST(Input, StreamCallWithoutStreamIsAnError) {
  TestSession session;
  session.Launch(0, 1);
  EXPECT_EQ(session.Expect(wire::DownKind::kError).header.code, CUDA_ERROR_INVALID_HANDLE);
}

TEST(Input, UnknownHandlesAreErrors) {
  TestSession session;
  session.CreateStream(kOne);
  calls::lwGraphLaunch launch;
  launch.exec = 12345;
  session.Send(launch, kOne);
  EXPECT_EQ(session.Expect(wire::DownKind::kError).header.code, CUDA_ERROR_INVALID_HANDLE);
  calls::lwModuleGlobal global;
  global.library = 4711;
  session.Send(global);
  EXPECT_EQ(session.Expect(wire::DownKind::kReply).header.code, CUDA_ERROR_INVALID_HANDLE);
  session.ExpectProgress(kOne, session.Launch(kOne, 1));
}

// An id that was made up, one of another type, and one that is gone.
TEST(Input, OnlyTheSessionsOwnHandlesReachTheDriver) {
  TestSession session;
  session.Send(calls::cuArrayCreate_v2());
  DownRecord reply = session.Expect(wire::DownKind::kReply);
  ASSERT_EQ(reply.header.code, CUDA_SUCCESS);
  calls::cuArrayCreate_v2::Reply created;
  wire::Reader reader(reply.payload);
  ASSERT_EQ(created.Decode(reader), wire::WireResult::kOk);
  auto destroy_array = [&](uint64_t id) {
    calls::cuArrayDestroy call;
    call.hArray = id;
    session.Send(call);
    return session.Expect(wire::DownKind::kReply).header.code;
  };
  EXPECT_EQ(destroy_array(0x1000), CUDA_ERROR_INVALID_HANDLE);
  calls::cuMipmappedArrayDestroy other;
  other.hMipmappedArray = created.pHandle;
  session.Send(other);
  EXPECT_EQ(session.Expect(wire::DownKind::kReply).header.code, CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(destroy_array(created.pHandle), CUDA_SUCCESS);
  EXPECT_EQ(destroy_array(created.pHandle), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(session.driver.log(), std::vector<std::string>{"destroy array"});
}

// Kernels read the driver's own values of textures and surfaces, so clients have them. No others
// reach the driver: none that were made up, of the other kind, or gone.
TEST(Input, OnlyTheSessionsOwnTextureObjectsReachTheDriver) {
  FakeDriver fake;
  DriverTable table = fake.table();
  table.cuTexObjectCreate = [](CUtexObject* object, const CUDA_RESOURCE_DESC*,
                               const CUDA_TEXTURE_DESC*, const CUDA_RESOURCE_VIEW_DESC*) {
    *object = 0x700;
    return CUDA_SUCCESS;
  };
  table.cuTexObjectDestroy = [](CUtexObject) { return FakeDriver::Get().Note("texture"); };
  table.cuSurfObjectDestroy = [](CUsurfObject) { return FakeDriver::Get().Note("surface"); };
  TestSession session(table, OneDevice());
  CUDA_RESOURCE_DESC resource{};
  resource.resType = CU_RESOURCE_TYPE_LINEAR;
  calls::lwTextureCreate create;
  create.resource = std::as_bytes(std::span(&resource, 1));
  session.Send(create);
  ASSERT_EQ(session.Expect(wire::DownKind::kReply).header.code, CUDA_SUCCESS);
  auto destroy_texture = [&](uint64_t value) {
    calls::cuTexObjectDestroy call;
    call.texObject = value;
    session.Send(call);
    return session.Expect(wire::DownKind::kReply).header.code;
  };
  calls::cuSurfObjectDestroy surface;
  surface.surfObject = 0x700;
  session.Send(surface);
  EXPECT_EQ(session.Expect(wire::DownKind::kReply).header.code, CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(destroy_texture(0x701), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(destroy_texture(0x700), CUDA_SUCCESS);
  EXPECT_EQ(destroy_texture(0x700), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(session.driver.log(), std::vector<std::string>{"texture"});
}

// An attribute may hold an event: as the driver's own pointer.
TEST(Input, AttributesThatHoldHandlesAreRefused) {
  TestSession session;
  session.CreateStream(kOne);
  for (int32_t id :
       {CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT, CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT,
        CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE}) {
    calls::cuStreamSetAttribute call;
    call.attr = id;
    call.param.fill(std::byte{7});
    session.Send(call, kOne);
    EXPECT_EQ(session.Expect(wire::DownKind::kReply).header.code, CUDA_ERROR_INVALID_VALUE);
  }
}

// Half of a resource is the driver's own: pointers, for all that we know.
TEST(Input, OnlyResourcesThatWereGivenReachTheDriver) {
  TestSession session;
  calls::cuDeviceGetDevResource ask;
  ask.type = CU_DEV_RESOURCE_TYPE_SM;
  session.Send(ask);
  DownRecord answer = session.Expect(wire::DownKind::kReply);
  calls::cuDeviceGetDevResource::Reply given;
  wire::Reader reader(answer.payload);
  ASSERT_EQ(given.Decode(reader), wire::WireResult::kOk);
  auto describe = [&](std::span<const std::byte> bytes) {
    calls::lwResourceDescriptor call;
    call.resource = bytes;
    session.Send(call);
    return session.Expect(wire::DownKind::kReply).header.code;
  };
  EXPECT_EQ(describe(given.resource), CUDA_SUCCESS);
  EXPECT_EQ(describe(std::span(given.resource).first(143)), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(describe({}), CUDA_ERROR_INVALID_VALUE);
  given.resource[40] = std::byte{1};
  EXPECT_EQ(describe(given.resource), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(session.driver.log(), std::vector<std::string>{"descriptor"});
}

// To the driver it is room for very many elements.
TEST(Input, ACountThatWouldBeNegativeIsAnError) {
  TestSession session;
  calls::cuGraphGetEdges edges;
  edges.want_from = edges.want_to = true;
  edges.numEdges = uint64_t{1} << 63;
  session.Send(edges);
  EXPECT_EQ(session.Expect(wire::DownKind::kReply).header.code, CUDA_ERROR_INVALID_VALUE);
  calls::cuGraphGetNodes nodes;
  nodes.want_nodes = true;
  nodes.numNodes = UINT64_MAX;
  session.Send(nodes);
  EXPECT_EQ(session.Expect(wire::DownKind::kReply).header.code, CUDA_ERROR_INVALID_VALUE);
}

// Of a launch into a stream that does not exist, too.
TEST(Input, ListsOfUnlikeLengthsReachNoEvents) {
  TestSession session;
  calls::lwGraphLaunch launch;
  launch.exec = 5;
  launch.record.assign(10'000, 1);
  launch.wait.assign(10'000, 1);
  session.Send(launch, 999);
  EXPECT_EQ(session.Expect(wire::DownKind::kError).header.code, CUDA_ERROR_INVALID_HANDLE);
  EXPECT_FALSE(session.over);
}

TEST(Input, AbsurdSizesAreErrors) {
  TestSession session;
  session.CreateStream(kOne);
  calls::lwCopyToHost copy;
  copy.bytes = uint64_t{1} << 63;
  copy.place.address = 0x1000;
  copy.place.width_bytes = copy.bytes;
  copy.place.rows = copy.place.slices = 1;
  copy.transfer = 5;
  session.Send(copy, kOne);
  EXPECT_EQ(session.Expect(wire::DownKind::kError).header.code, CUDA_ERROR_INVALID_VALUE);
  copy.place.rows = uint64_t{1} << 40;
  copy.place.width_bytes = uint64_t{1} << 40;
  session.Send(copy, kOne);
  EXPECT_EQ(session.Expect(wire::DownKind::kError).header.code, CUDA_ERROR_INVALID_VALUE);
  calls::lwLease lease;
  lease.bytes = {uint64_t{1} << 63};
  session.Send(lease);
  EXPECT_EQ(session.Expect(wire::DownKind::kReply).header.code, CUDA_ERROR_OUT_OF_MEMORY);
  lease.bytes.assign(5000, uint64_t{1} << 40);  // also in more pieces than a lease may have
  session.Send(lease);
  EXPECT_EQ(session.Expect(wire::DownKind::kReply).header.code, CUDA_ERROR_OUT_OF_MEMORY);
  calls::lwMap map;
  map.address = UINT64_MAX - 4096;
  map.chunk = {1, 2, 3};
  session.Send(map, 0, wire::kWantsReply);
  EXPECT_NE(session.Expect(wire::DownKind::kReply).header.code, 0);
  calls::lwRemap remap;
  remap.address = UINT64_MAX - 4096;
  remap.unmap = 1 << 20;
  remap.chunk = {1, 2, 3};
  session.Send(remap, 0, wire::kWantsReply);
  EXPECT_EQ(session.Expect(wire::DownKind::kReply).header.code, CUDA_ERROR_INVALID_HANDLE);
  remap.device = -1;
  session.Send(remap, 0, wire::kWantsReply);
  EXPECT_EQ(session.Expect(wire::DownKind::kReply).header.code, CUDA_ERROR_INVALID_DEVICE);
  session.ExpectProgress(kOne, session.Launch(kOne, 1));
}

TEST(Input, TransferOutOfRangeEndsTheSession) {
  TestSession session;
  session.CreateStream(kOne);
  std::vector<std::byte> target(100'000);
  calls::lwCopyToDevice copy;
  copy.place.address = reinterpret_cast<uint64_t>(target.data());
  copy.place.width_bytes = copy.bytes = target.size();
  copy.place.rows = copy.place.slices = 1;
  copy.transfer = 31;
  session.Send(copy, kOne);
  calls::lwCopyData piece;
  piece.transfer = 31;
  piece.offset = UINT64_MAX - 10;
  piece.data = std::span(target).first(100);
  session.Send(piece);
  ExpectOver(session, "an unknown transfer");
}

TEST(Input, LaunchWithEventsWithoutVersionsEndsTheSession) {
  for (bool records : {true, false}) {
    TestSession session;
    session.CreateStream(kOne);
    calls::lwGraphLaunch launch;
    launch.exec = 5;
    (records ? launch.record : launch.wait) = {1, 2, 3};
    (records ? launch.record_version : launch.wait_version) = {1};
    session.Send(launch, kOne);
    ExpectOver(session, "decoded");
  }
}

TEST(Input, ImageThatClaimsMoreThanItHasIsRefused) {
  TestSession session;
  struct {
    uint32_t magic = 0xBA55ED50;
    uint16_t version = 1, header_bytes = 16;
    uint64_t rest = uint64_t{1} << 40;
  } image;
  calls::lwCopyData data;
  data.transfer = 60;
  data.data = std::as_bytes(std::span(&image, 1));
  session.Send(data);
  calls::lwModuleLoad load;
  load.library = 61;
  load.transfer = 60;
  load.bytes = sizeof(image);
  session.Send(load);
  EXPECT_EQ(session.Expect(wire::DownKind::kReply).header.code, CUDA_ERROR_INVALID_IMAGE);
}

// Random bytes behind good headers of every call that the worker answers by itself. Pointers that
// the fake driver would follow are kept out: copies, memsets.
TEST(Input, RandomArgumentsNeverCrash) {
  std::mt19937_64 random(7);
  const CallId ids[] = {
      CallId::lwStreamDestroy, CallId::lwEventCreate,     CallId::lwEventDestroy,
      CallId::lwEventRecord,   CallId::lwStreamWaitEvent, CallId::lwStreamWanted,
      CallId::lwLease,         CallId::lwReturnChunks,    CallId::lwMap,
      CallId::lwUnmap,         CallId::lwModuleUnload,    CallId::lwHostFunctionDone,
      CallId::lwGraphLaunch,   CallId::lwGraphDestroy,    CallId::lwModuleGlobal,
      CallId::lwLaunch,        CallId::lwEventElapsed,    CallId::lwReclaimed,
      CallId::lwRemap};
  for (int round = 0; round < 60; ++round) {
    TestSession session;
    session.CreateStream(kOne);
    for (int i = 0; i < 50 && !session.over; ++i) {
      CallId id = ids[random() % std::size(ids)];
      std::vector<std::byte> bytes(random() % 64);
      for (auto& byte : bytes) byte = std::byte(random() % 3 == 0 ? random() : 0);
      session.SendRaw(static_cast<uint16_t>(id), bytes, CallStreamOrdered(id) ? kOne : 0);
      if (session.up->closed()) break;
    }
  }
}

TEST(Input, ClosedLogEndsTheSession) {
  TestSession session;
  session.up->Close(0);
  session.Until([&] { return session.over.load(); }, "the session's end");
}

}  // namespace
}  // namespace longwire::worker::testing
