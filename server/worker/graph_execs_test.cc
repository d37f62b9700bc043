// Executables of graphs that allocate memory: there is one at a time, and its memory goes with it.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "server/worker/testing/test_session.h"

namespace longwire::worker::testing {
namespace {

using std::chrono::milliseconds;

constexpr uint64_t kFirst = 31, kSecond = 32;

std::atomic<int> execs{0};
std::atomic<bool> refusing{false};

void WaitUntil(const std::function<bool()>& done) {
  for (int i = 0; i < 500 && !done(); ++i) std::this_thread::sleep_for(milliseconds(10));
}

// Finds another executable there, which is gone when it says so.
CUresult Instantiate(CUgraphExec* exec, CUgraph, unsigned long long) {
  if (execs != 0) {
    refusing = true;
    WaitUntil([] { return execs == 0; });
    std::this_thread::sleep_for(milliseconds(100));
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  ++execs;
  *exec = reinterpret_cast<CUgraphExec>(0x800);
  return CUDA_SUCCESS;
}

CUresult Destroy(CUgraphExec) {
  WaitUntil([] { return refusing.load(); });
  --execs;
  return CUDA_SUCCESS;
}

CUresult NewGraph(CUgraph* graph, unsigned) {
  *graph = reinterpret_cast<CUgraph>(0x600);
  return CUDA_SUCCESS;
}

DriverTable Table() {
  DriverTable table = FakeDriver().table();
  table.cuGraphCreate = NewGraph;
  table.cuGraphInstantiateWithFlags = Instantiate;
  table.cuGraphExecDestroy = Destroy;
  return table;
}

TEST(GraphExecs, ADestroyedOneThatGoesJustAfterTheRefusalIsInNobodysWay) {
  TestSession session(Table(), OneDevice());
  DownRecord graph = session.ExpectReply(session.Send(calls::cuGraphCreate{}));
  calls::lwGraphInstantiate instantiate;
  instantiate.graph = graph.Number();
  instantiate.exec = kFirst;
  EXPECT_EQ(session.ExpectReply(session.Send(instantiate)).header.code, 0);
  calls::lwGraphExecDestroy destroy;
  destroy.exec = kFirst;
  session.Send(destroy);
  instantiate.exec = kSecond;
  EXPECT_EQ(session.ExpectReply(session.Send(instantiate)).header.code, 0);
  EXPECT_TRUE(refusing);
}

// The destroy takes its time, and what is used is asked for right behind it.
TEST(GraphExecs, AFigureOfTheirMemoryKnowsOfADestroyBeforeIt) {
  static std::atomic<uint64_t> used{4096};
  DriverTable table = FakeDriver().table();
  table.cuGraphCreate = NewGraph;
  table.cuGraphInstantiateWithFlags = [](CUgraphExec* exec, CUgraph, unsigned long long) {
    *exec = reinterpret_cast<CUgraphExec>(0x800);
    return CUDA_SUCCESS;
  };
  table.cuGraphExecDestroy = [](CUgraphExec) {
    std::this_thread::sleep_for(milliseconds(100));
    used = 0;
    return CUDA_SUCCESS;
  };
  table.cuDeviceGetGraphMemAttribute = [](CUdevice, CUgraphMem_attribute, void* value) {
    *static_cast<cuuint64_t*>(value) = used;
    return CUDA_SUCCESS;
  };
  TestSession session(table, OneDevice());
  uint64_t graph = session.ExpectReply(session.Send(calls::cuGraphCreate{})).Number();
  calls::lwGraphInstantiate instantiate;
  instantiate.graph = graph;
  instantiate.exec = kFirst;
  EXPECT_EQ(session.ExpectReply(session.Send(instantiate)).header.code, 0);
  calls::lwGraphExecDestroy destroy;
  destroy.exec = kFirst;
  session.Send(destroy);
  EXPECT_EQ(session.ExpectReply(session.Send(calls::lwGraphMemAttribute{})).Number(), 0u);
}

}  // namespace
}  // namespace longwire::worker::testing
