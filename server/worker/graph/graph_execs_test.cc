// Executables of graphs that allocate memory: there is one at a time, and its memory goes with it.
// Launches and changes of one executable: in the order of the log.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "base/mutex.h"
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

// The result that the client gets for an instantiation.
CUresult CodeOf(const DownRecord& record) {
  calls::lwGraphInstantiate::Reply reply;
  wire::Reader reader(record.payload);
  if (record.header.code != 0) return static_cast<CUresult>(record.header.code);
  EXPECT_EQ(reply.Decode(reader), wire::WireResult::kOk);
  return static_cast<CUresult>(reply.code);
}

TEST(GraphExecs, ADestroyedOneThatGoesJustAfterTheRefusalIsInNobodysWay) {
  TestSession session(Table(), OneDevice());
  DownRecord graph = session.ExpectReply(session.Send(calls::cuGraphCreate{}));
  calls::lwGraphInstantiate instantiate;
  instantiate.graph = graph.Number();
  instantiate.exec = kFirst;
  EXPECT_EQ(CodeOf(session.ExpectReply(session.Send(instantiate))), CUDA_SUCCESS);
  calls::lwGraphExecDestroy destroy;
  destroy.exec = kFirst;
  session.Send(destroy);
  instantiate.exec = kSecond;
  EXPECT_EQ(CodeOf(session.ExpectReply(session.Send(instantiate))), CUDA_SUCCESS);
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
  EXPECT_EQ(CodeOf(session.ExpectReply(session.Send(instantiate))), CUDA_SUCCESS);
  calls::lwGraphExecDestroy destroy;
  destroy.exec = kFirst;
  session.Send(destroy);
  EXPECT_EQ(session.ExpectReply(session.Send(calls::lwGraphMemAttribute{})).Number(), 0u);
}

// The stream of the first launch is held up before the driver gets the launch.
TEST(GraphExecs, ALaunchComesBehindTheOneBeforeItInAnotherStream) {
  static base::Mutex mutex;
  static std::vector<CUstream> launched;
  auto count = [] {
    base::MutexLock lock(mutex);
    return launched.size();
  };
  DriverTable table = FakeDriver().table();
  table.cuGraphCreate = NewGraph;
  table.cuGraphInstantiateWithFlags = [](CUgraphExec* exec, CUgraph, unsigned long long) {
    *exec = reinterpret_cast<CUgraphExec>(0x800);
    return CUDA_SUCCESS;
  };
  table.cuGraphLaunch = [](CUgraphExec, CUstream stream) {
    base::MutexLock lock(mutex);
    launched.push_back(stream);
    return CUDA_SUCCESS;
  };
  constexpr uint64_t kHeld = 11, kFree = 12, kTicket = 5;
  TestSession session(table, OneDevice());
  session.CreateStream(kHeld);
  session.CreateStream(kFree);
  uint64_t graph = session.ExpectReply(session.Send(calls::cuGraphCreate{})).Number();
  calls::lwGraphInstantiate instantiate;
  instantiate.graph = graph;
  instantiate.exec = kFirst;
  EXPECT_EQ(CodeOf(session.ExpectReply(session.Send(instantiate))), CUDA_SUCCESS);
  calls::lwHostFunction host;
  host.ticket = kTicket;
  session.Send(host, kHeld);
  calls::lwGraphLaunch launch;
  launch.exec = kFirst;
  session.Send(launch, kHeld);
  session.Send(launch, kFree);
  session.Expect(wire::DownKind::kHostFunction);
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_EQ(count(), 0u);
  calls::lwHostFunctionDone done;
  done.ticket = kTicket;
  session.Send(done);
  session.Until([&] { return count() == 2; }, "both launches");
  EXPECT_EQ(FakeDriver::Get().StateOf(launched[0]).index, 1u);
  EXPECT_EQ(FakeDriver::Get().StateOf(launched[1]).index, 2u);
}

// An executable with a child, of which the driver takes its time to change it.
class GraphChanges : public ::testing::Test {
 protected:
  static DriverTable ChangingTable() {
    DriverTable table = FakeDriver().table();
    table.cuGraphCreate = NewGraph;
    table.cuGraphAddEmptyNode = [](CUgraphNode* node, CUgraph, const CUgraphNode*, size_t) {
      *node = reinterpret_cast<CUgraphNode>(0x700);
      return CUDA_SUCCESS;
    };
    table.cuGraphInstantiateWithFlags = [](CUgraphExec* exec, CUgraph, unsigned long long) {
      *exec = reinterpret_cast<CUgraphExec>(0x800);
      return CUDA_SUCCESS;
    };
    table.cuGraphExecChildGraphNodeSetParams = [](CUgraphExec, CUgraphNode, CUgraph) {
      std::this_thread::sleep_for(milliseconds(100));
      ++done_;
      return code_.load();
    };
    table.cuGraphLaunch = [](CUgraphExec, CUstream) {
      launched_behind_ = done_.load();
      ++launches_;
      return CUDA_SUCCESS;
    };
    return table;
  }
  void SetUp() override {
    done_ = launches_ = 0;
    launched_behind_ = -1;
    code_ = CUDA_SUCCESS;
    session_.CreateStream(kStream);
    graph_ = session_.ExpectReply(session_.Send(calls::cuGraphCreate{})).Number();
    calls::cuGraphAddEmptyNode add;
    add.hGraph = graph_;
    node_ = session_.ExpectReply(session_.Send(add)).Number();
    calls::lwGraphInstantiate instantiate;
    instantiate.graph = graph_;
    instantiate.exec = kFirst;
    ASSERT_EQ(CodeOf(session_.ExpectReply(session_.Send(instantiate))), CUDA_SUCCESS);
  }

  uint64_t Change(uint16_t flags) {
    calls::lwGraphSetChild set;
    set.exec = kFirst;
    set.node = node_;
    set.child = graph_;
    return session_.Send(set, 0, flags);
  }
  void Launch() {
    calls::lwGraphLaunch launch;
    launch.exec = kFirst;
    session_.Send(launch, kStream);
  }
  void ExpectLaunches(int launches) {
    session_.Until([&] { return launches_ == launches; }, "the launch");
  }

  static constexpr uint64_t kStream = 11;
  static inline std::atomic<int> done_, launches_, launched_behind_;
  static inline std::atomic<CUresult> code_;
  TestSession session_{ChangingTable(), OneDevice()};
  uint64_t graph_ = 0, node_ = 0;
};

TEST_F(GraphChanges, ALaunchComesBehindAChangeThatNobodyAwaits) {
  Change(wire::kUnawaited);
  Change(wire::kUnawaited);
  Launch();
  ExpectLaunches(1);
  EXPECT_EQ(launched_behind_, 2);
}

TEST_F(GraphChanges, OneThatWasRefusedUnnoticedIsNotLaunched) {
  code_ = CUDA_ERROR_INVALID_VALUE;
  const uint64_t change = Change(wire::kUnawaited);
  Launch();
  EXPECT_EQ(session_.ExpectReply(change).header.code, CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(session_.Expect(wire::DownKind::kError).header.code, CUDA_ERROR_INVALID_VALUE);
  code_ = CUDA_SUCCESS;
  session_.ExpectReply(Change(0));
  Launch();
  ExpectLaunches(1);
}

TEST_F(GraphChanges, OneWhoseRefusalTheProgramKnowsIsLaunchedAsItWas) {
  code_ = CUDA_ERROR_INVALID_VALUE;
  session_.ExpectReply(Change(0));
  Launch();
  ExpectLaunches(1);
}

}  // namespace
}  // namespace longwire::worker::testing
