// Whoever waits for a queue's events is not left to gRPC's timer threads.
#include "link/transport/ring_at_once.h"

#include <gtest/gtest.h>

#include "link/transport/grpc_setup.h"

namespace longwire::transport {
namespace {

TEST(RingAtOnce, TheEventIsThereWhenTheCallReturns) {
  PrepareProcess();
  grpc::CompletionQueue queue;
  grpc::Alarm alarm;
  RingAtOnce(&alarm, &queue, &alarm);
  void* tag = nullptr;
  bool ok = false;
  auto status = queue.AsyncNext(&tag, &ok, gpr_time_0(GPR_CLOCK_MONOTONIC));
  EXPECT_EQ(status, grpc::CompletionQueue::GOT_EVENT);
  EXPECT_EQ(tag, &alarm);
  EXPECT_TRUE(ok);
  queue.Shutdown();
}

}  // namespace
}  // namespace longwire::transport
