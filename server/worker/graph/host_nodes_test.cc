// Host nodes whose driver has kept more than the worker knows, and streams that are said to capture
// and do not.
#include "server/worker/graph/host_nodes.h"

#include <gtest/gtest.h>

#include "server/worker/testing/test_session.h"

namespace longwire::worker::testing {
namespace {

constexpr uint64_t kStream = 5, kEvent = 6;

CUresult NothingCaptured(CUstream, CUstreamCaptureStatus* status, cuuint64_t*, CUgraph*,
                         const CUgraphNode**, const CUgraphEdgeData**, size_t*) {
  *status = CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}

TEST(HostNodes, AForgottenOneEndsTheSession) {
  TestSession session;
  host_nodes::Call(reinterpret_cast<void*>(uint64_t{1} << 40));
  DownRecord error = session.Expect(wire::DownKind::kError);
  EXPECT_EQ(error.header.flags & wire::kSessionOver, wire::kSessionOver);
}

// The driver would run the function later, when nobody keeps what it is given.
TEST(HostNodes, AStreamThatDoesNotCaptureTakesNoneOfThem) {
  static std::atomic<int> given{0};
  DriverTable table = FakeDriver().table();
  table.cuStreamGetCaptureInfo_v3 = NothingCaptured;
  table.cuLaunchHostFunc = [](CUstream, CUhostFn, void*) {
    ++given;
    return CUDA_SUCCESS;
  };
  table.cuMemcpyDtoHAsync_v2 = [](void*, CUdeviceptr, size_t, CUstream) {
    ++given;
    return CUDA_SUCCESS;
  };
  table.cuEventRecordWithFlags = [](CUevent, CUstream, unsigned flags) {
    if ((flags & CU_EVENT_RECORD_EXTERNAL) != 0) ++given;
    return CUDA_SUCCESS;
  };
  TestSession session(table, OneDevice());
  session.CreateStream(kStream);
  calls::lwEventCreate event;
  event.event = kEvent;
  session.Send(event);
  auto refused = [&session](uint64_t position) {
    DownRecord error = session.Expect(wire::DownKind::kError, [&](const DownRecord& record) {
      return record.header.position == position;
    });
    EXPECT_NE(error.header.code, 0);
  };
  calls::lwHostFunction function;
  function.ticket = 9;
  refused(session.Send(function, kStream, wire::kCapturing));
  calls::lwCopyToHost copy;
  copy.place.address = 0x1000;
  copy.place.x_bytes = 0;
  copy.place.height = copy.place.rows = copy.place.slices = 1;
  copy.place.pitch = copy.place.width_bytes = copy.bytes = 64;
  copy.transfer = 40;
  refused(session.Send(copy, kStream, wire::kCapturing));
  calls::lwEventRecord record;
  record.event = kEvent;
  record.version = 1;
  record.flags = CU_EVENT_RECORD_EXTERNAL;
  refused(session.Send(record, kStream, wire::kCapturing));
  EXPECT_EQ(given, 0);
}

}  // namespace
}  // namespace longwire::worker::testing
