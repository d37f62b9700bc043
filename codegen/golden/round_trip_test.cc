// The generated code of both ends, joined without a session: exported function → encoding →
// dispatch → driver → reply → results. The driver is a table of the test's own functions.
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "client-shim/entry/entry.h"
#include "client-shim/entry/forwarding.h"
#include "longwire/dispatch.h"
#include "longwire/driver_table.h"
#include "longwire/fake_driver.h"
#include "longwire/printer.h"
#include "longwire/proc_table.h"
#include "longwire/worker_hand_written.h"
#include "server/worker/calls/call_context.h"

using longwire::CallId;
using longwire::DriverTable;
namespace shim = longwire::shim;
namespace worker = longwire::worker;

extern "C" {
CUresult cuSinkValues(int, unsigned, size_t, float, double, unsigned char, unsigned short, CUlimit,
                      CUdevice, CUdeviceptr, void*, CUuuid, unsigned long long*);
CUresult cuSinkHandles(CUgraphNode*, CUgraph, CUgraph*, CUdevice*);
CUresult cuSinkStructs(const CUuuid*, const CUuuid*, CUuuid*, int*);
CUresult cuSinkLists(const CUgraphNode*, const unsigned*, const cuuint64_t*, const CUgraphEdgeData*,
                     size_t, unsigned long long*);
CUresult cuSinkAnswers(CUgraph, CUgraphNode*, CUgraphEdgeData*, size_t*);
CUresult cuSinkFixedRoom(unsigned*, unsigned);
CUresult cuSinkText(const char*, const char*, char*, int);
CUresult cuSinkDestroy(CUgraphNode);
CUresult cuSinkQueued(CUdeviceptr, CUstream);
CUresult cuSinkQueued_ptsz(CUdeviceptr, CUstream);
CUresult cuSinkWrapped(int*);
CUresult cuSinkWrapped_v2(int*);
CUresult cuSinkLocal(void* const*, CUhostFn);
CUresult cuSinkLocal_ptds(void* const*, CUhostFn);
CUresult cuSinkLocal_v2(void* const*, CUhostFn);
CUresult cuSinkRefused_ptsz(const CUDA_MEMCPY2D*, CUstream);
CUresult cuSinkWorker(int, int*);
}

namespace {

DriverTable driver;
CUstream last_stream = nullptr;

CUgraphNode Node(uint64_t value) { return reinterpret_cast<CUgraphNode>(value); }
CUgraph Graph(uint64_t value) { return reinterpret_cast<CUgraph>(value); }

}  // namespace

namespace longwire::shim {

EntryLog& Log() {
  static EntryLog log;
  return log;
}

CUresult Deliver(CallId id, uint64_t stream, wire::Writer& call, std::vector<std::byte>* reply) {
  worker::CallContext context(driver);
  context.stream = reinterpret_cast<CUstream>(stream);
  wire::Reader reader(call.span());
  if (worker::Dispatch(context, id, reader) != wire::WireResult::kOk) return CUDA_ERROR_UNKNOWN;
  const auto answer = context.answer.span();
  reply->assign(answer.begin(), answer.end());
  return context.result;
}

namespace hand {

CUresult cuSinkLocal(void* const*, CUhostFn, CUstream stream) {
  last_stream = stream;
  return CUDA_SUCCESS;
}
CUresult cuSinkWrapped(int* value) {
  const CUresult result = forward::cuSinkWrapped(value);
  *value += 1;
  return result;
}
CUresult cuSinkWrapped_v2(int* value) { return forward::cuSinkWrapped_v2(value); }

}  // namespace hand
}  // namespace longwire::shim

namespace longwire::worker {

CUresult Do_cuSinkWorker(CallContext&, const calls::cuSinkWorker& call,
                         calls::cuSinkWorker::Reply* reply) {
  reply->twice = 2 * call.a;
  return CUDA_SUCCESS;
}
CUresult Do_lwSinkEverything(CallContext&, const calls::lwSinkEverything&,
                             calls::lwSinkEverything::Reply*) {
  return CUDA_SUCCESS;
}
CUresult Do_lwSinkQueued(CallContext&, const calls::lwSinkQueued&, calls::lwSinkQueued::Reply*) {
  return CUDA_SUCCESS;
}
CUresult Do_lwSinkFacts(CallContext&, const calls::lwSinkFacts&, calls::lwSinkFacts::Reply*) {
  return CUDA_SUCCESS;
}
CUresult Do_lwSinkLinked(CallContext&, const calls::lwSinkLinked&, calls::lwSinkLinked::Reply*) {
  return CUDA_SUCCESS;
}

}  // namespace longwire::worker

namespace {

class RoundTrip : public testing::Test {
 protected:
  RoundTrip() {
    driver = {};
    shim::Log() = {};
    worker::CallContext::handles = {{0x1007, Node(7)}, {0x1008, Node(8)}, {0x1009, Node(9)}};
  }
};

TEST_F(RoundTrip, ValuesArriveAsTheyAre) {
  driver.cuSinkValues = [](int a, unsigned b, size_t c, float d, double e, unsigned char f,
                           unsigned short g, CUlimit h, CUdevice i, CUdeviceptr j, void* k,
                           CUuuid l, unsigned long long* sum) {
    *sum = a + b + c + static_cast<uint64_t>(d + e) + f + g + h + i + j +
           reinterpret_cast<uint64_t>(k) + l.bytes[15];
    return CUDA_SUCCESS;
  };
  unsigned long long sum = 0;
  CUuuid uuid{};
  uuid.bytes[15] = 100;
  EXPECT_EQ(cuSinkValues(-1, 2, size_t{1} << 40, 4.0f, 5.0, 6, 7, CU_LIMIT_MALLOC_HEAP_SIZE, 9, 10,
                         reinterpret_cast<void*>(11), uuid, &sum),
            CUDA_SUCCESS);
  EXPECT_EQ(sum, (uint64_t{1} << 40) - 1 + 2 + 9 + 6 + 7 + 2 + 23 + 10 + 11 + 100);
  EXPECT_EQ(cuSinkValues(0, 0, 0, 0, 0, 0, 0, CU_LIMIT_STACK_SIZE, -1, 0, nullptr, uuid, &sum),
            CUDA_ERROR_INVALID_DEVICE);
}

TEST_F(RoundTrip, RefusesNullResultsAndFailedPrologues) {
  EXPECT_EQ(cuSinkValues(0, 0, 0, 0, 0, 0, 0, CU_LIMIT_STACK_SIZE, 0, 0, nullptr, {}, nullptr),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(shim::Log().done, 1);
  shim::Log().refusal = CUDA_ERROR_NOT_INITIALIZED;
  EXPECT_EQ(cuSinkDestroy(nullptr), CUDA_ERROR_NOT_INITIALIZED);
  CUgraphNode made = nullptr;
  CUdevice device = 0;
  EXPECT_EQ(cuSinkHandles(&made, nullptr, nullptr, &device), CUDA_ERROR_INVALID_HANDLE)
      << "what is looked at first";
}

TEST_F(RoundTrip, HandlesAreTranslatedBothWays) {
  driver.cuSinkHandles = [](CUgraphNode* made, CUgraph graph, CUgraph* other, CUdevice* device) {
    *made = Node(reinterpret_cast<uint64_t>(graph) + 1);
    *other = graph;
    *device = 17;
    return CUDA_SUCCESS;
  };
  CUgraphNode made = nullptr;
  CUdevice device = 0;
  EXPECT_EQ(cuSinkHandles(&made, Graph(0x1007), nullptr, &device), CUDA_SUCCESS);
  EXPECT_EQ(made, Node(0x1008));
  EXPECT_EQ(device, 3);
  EXPECT_EQ(cuSinkHandles(&made, Graph(0x7777), nullptr, &device), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(RoundTrip, StructsMayBeMissing) {
  driver.cuSinkStructs = [](const CUuuid* from, const CUuuid* maybe, CUuuid* to, int* there) {
    *to = *from;
    *there = maybe == nullptr ? 0 : maybe->bytes[0];
    return CUDA_SUCCESS;
  };
  CUuuid from{}, maybe{}, to{};
  from.bytes[3] = 5;
  maybe.bytes[0] = 6;
  int there = -1;
  EXPECT_EQ(cuSinkStructs(&from, nullptr, &to, &there), CUDA_SUCCESS);
  EXPECT_EQ(to.bytes[3], 5);
  EXPECT_EQ(there, 0);
  EXPECT_EQ(cuSinkStructs(&from, &maybe, &to, &there), CUDA_SUCCESS);
  EXPECT_EQ(there, 6);
  EXPECT_EQ(cuSinkStructs(nullptr, &maybe, &to, &there), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(RoundTrip, ListsAreAsLongAsTheirCounts) {
  driver.cuSinkLists = [](const CUgraphNode* nodes, const unsigned* numbers,
                          const cuuint64_t* strides, const CUgraphEdgeData* edges, size_t count,
                          unsigned long long* sum) {
    *sum = edges == nullptr ? 0 : 1000;
    for (size_t i = 0; i < count; ++i) {
      *sum += numbers[i] + reinterpret_cast<uint64_t>(nodes[i]) + (i + 1 < count ? strides[i] : 0);
    }
    return CUDA_SUCCESS;
  };
  const CUgraphNode nodes[] = {Node(0x1007), Node(0x1008)};
  const unsigned numbers[] = {100, 200};
  const cuuint64_t strides[] = {5000};
  const CUgraphEdgeData edges[2] = {};
  unsigned long long sum = 0;
  EXPECT_EQ(cuSinkLists(nodes, numbers, strides, nullptr, 2, &sum), CUDA_SUCCESS);
  EXPECT_EQ(sum, 7u + 8 + 300 + 5000);
  EXPECT_EQ(cuSinkLists(nodes, numbers, strides, edges, 2, &sum), CUDA_SUCCESS);
  EXPECT_EQ(sum, 1000u + 7 + 8 + 300 + 5000);
  EXPECT_EQ(cuSinkLists(nodes, numbers, strides, edges, size_t{1} << 40, &sum),
            CUDA_ERROR_INVALID_VALUE);
}

TEST_F(RoundTrip, AWorkerRefusesListsThatDoNotFitTheirCount) {
  driver.cuSinkLists = [](const CUgraphNode*, const unsigned*, const cuuint64_t*,
                          const CUgraphEdgeData*, size_t, unsigned long long*) {
    ADD_FAILURE() << "the driver was called";
    return CUDA_SUCCESS;
  };
  longwire::calls::cuSinkLists call;
  call.numbers = {1, 2, 3};
  call.count = 100;
  longwire::calls::cuSinkLists::Reply reply;
  shim::ReplyBytes bytes;
  EXPECT_EQ(shim::CallAndWait(call, 0, &reply, &bytes), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(RoundTrip, AnswersFillTheRoomThereIs) {
  driver.cuSinkAnswers = [](CUgraph, CUgraphNode* nodes, CUgraphEdgeData*, size_t* count) {
    for (size_t i = 0; nodes != nullptr && i < std::min<size_t>(*count, 3); ++i) {
      nodes[i] = Node(7 + i);
    }
    *count = nodes == nullptr ? 3 : std::min<size_t>(*count, 3);
    return CUDA_SUCCESS;
  };
  size_t count = 0;
  EXPECT_EQ(cuSinkAnswers(nullptr, nullptr, nullptr, &count), CUDA_SUCCESS);
  EXPECT_EQ(count, 3u);
  CUgraphNode nodes[8];
  std::fill(nodes, nodes + 8, Node(1));
  count = 8;
  EXPECT_EQ(cuSinkAnswers(nullptr, nodes, nullptr, &count), CUDA_SUCCESS);
  EXPECT_EQ(count, 3u);
  EXPECT_EQ(nodes[2], Node(0x1009));
  for (size_t i = 3; i < 8; ++i) EXPECT_EQ(nodes[i], nullptr) << "beyond the last: " << i;
}

TEST_F(RoundTrip, FixedRoomIsFilled) {
  driver.cuSinkFixedRoom = [](unsigned* squares, unsigned count) {
    for (unsigned i = 0; i < count; ++i) squares[i] = i * i;
    return CUDA_SUCCESS;
  };
  unsigned squares[5] = {};
  EXPECT_EQ(cuSinkFixedRoom(squares, 4), CUDA_SUCCESS);
  EXPECT_EQ(squares[3], 9u);
  EXPECT_EQ(squares[4], 0u);
}

TEST_F(RoundTrip, TextIsCutToTheRoom) {
  driver.cuSinkText = [](const char* text, const char* maybe, char* answer, int room) {
    snprintf(answer, room, "%s%s", text, maybe == nullptr ? "" : maybe);
    return CUDA_SUCCESS;
  };
  char answer[8] = "untouch";
  EXPECT_EQ(cuSinkText("abc", nullptr, answer, 8), CUDA_SUCCESS);
  EXPECT_STREQ(answer, "abc");
  EXPECT_EQ(cuSinkText("abcdef", "ghij", answer, 8), CUDA_SUCCESS);
  EXPECT_STREQ(answer, "abcdefg");
  EXPECT_EQ(cuSinkText(nullptr, "x", answer, 8), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(RoundTrip, DestroyedHandlesAreForgotten) {
  driver.cuSinkDestroy = [](CUgraphNode node) {
    return node == Node(8) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  };
  EXPECT_EQ(cuSinkDestroy(Node(0x1009)), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuSinkDestroy(Node(0x1009)), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuSinkDestroy(Node(0x1008)), CUDA_SUCCESS);
  EXPECT_EQ(cuSinkDestroy(Node(0x1008)), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(RoundTrip, PerThreadFormsNameTheThreadsStream) {
  driver.cuSinkQueued = [](CUdeviceptr, CUstream stream) {
    last_stream = stream;
    return CUDA_SUCCESS;
  };
  EXPECT_EQ(cuSinkQueued(1, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(last_stream, nullptr);
  EXPECT_EQ(cuSinkQueued_ptsz(1, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(last_stream, CU_STREAM_PER_THREAD);
  EXPECT_EQ(cuSinkQueued_ptsz(1, CU_STREAM_LEGACY), CUDA_SUCCESS);
  EXPECT_EQ(last_stream, CU_STREAM_LEGACY);
  cuSinkLocal(nullptr, nullptr);
  EXPECT_EQ(last_stream, CU_STREAM_LEGACY);
  cuSinkLocal_ptds(nullptr, nullptr);
  EXPECT_EQ(last_stream, CU_STREAM_PER_THREAD);
}

TEST_F(RoundTrip, BodiesOfOurOwn) {
  driver.cuSinkWrapped_v1 = [](int* value) {
    *value = 4;
    return CUDA_SUCCESS;
  };
  driver.cuSinkWrapped_v2 = [](int* value) {
    *value += 40;
    return CUDA_SUCCESS;
  };
  int value = 1;
  EXPECT_EQ(cuSinkWrapped(&value), CUDA_SUCCESS);
  EXPECT_EQ(value, 5);
  EXPECT_EQ(cuSinkWrapped_v2(&value), CUDA_SUCCESS);
  EXPECT_EQ(value, 45);
  EXPECT_EQ(cuSinkWorker(21, &value), CUDA_SUCCESS);
  EXPECT_EQ(value, 42);
  EXPECT_EQ(cuSinkRefused_ptsz(nullptr, nullptr), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(shim::Log().refused, CallId::cuSinkRefused);
  EXPECT_STREQ(longwire::CallRefusal(CallId::cuSinkRefused), "nobody cooks here");
}

TEST_F(RoundTrip, FunctionsThatTheDriverLacksAreNotSupported) {
  EXPECT_EQ(cuSinkDestroy(Node(0x1008)), CUDA_ERROR_NOT_SUPPORTED);
}

TEST_F(RoundTrip, DispatchRefusesWhatIsNoCall) {
  worker::CallContext context(driver);
  const std::byte bytes[64] = {};
  for (const int id : {0, 3, 14, 18, 65535}) {
    longwire::wire::Reader reader{std::span(bytes)};
    EXPECT_EQ(worker::Dispatch(context, static_cast<CallId>(id), reader),
              longwire::wire::WireResult::kFatal)
        << id;
  }
}

TEST(Tables, FactsAreConstants) {
  using longwire::CallKindValue;
  static_assert(longwire::IsGated(CallId::lwSinkQueued));
  static_assert(!longwire::IsGated(CallId::lwSinkFacts));
  static_assert(longwire::WorksWhenFailed(CallId::lwSinkFacts));
  static_assert(longwire::CallIsPrivate(CallId::lwSinkFacts));
  static_assert(!longwire::CallIsPrivate(CallId::cuSinkValues));
  static_assert(longwire::AllowedInHostFunction(CallId::cuSinkLocal));
  static_assert(longwire::AllowedInHostFunction(CallId::cuSinkLocal_v2), "as what it is the same as");
  static_assert(!longwire::AllowedInHostFunction(CallId::cuSinkValues));
  static_assert(longwire::CallKind(CallId::cuSinkRefused) == CallKindValue::kUnsupported);
}

TEST(Tables, ThreadsAndHoldsFollowFromTheKind) {
  using longwire::CallHold, longwire::CallThread;
  static_assert(longwire::CallRunsOn(CallId::cuSinkValues) == CallThread::kClientThread);
  static_assert(longwire::CallHeldUntil(CallId::cuSinkValues) == CallHold::kNothing);
  static_assert(longwire::CallHeldUntil(CallId::cuSinkQueued) == CallHold::kFinished);
  static_assert(longwire::CallRunsOn(CallId::lwSinkQueued) == CallThread::kLogThread);
  static_assert(longwire::CallHeldUntil(CallId::lwSinkQueued) == CallHold::kNothing);
  static_assert(longwire::CallHeldUntil(CallId::lwSinkFacts) == CallHold::kIssued);
  static_assert(longwire::CallRunsOn(CallId::lwSinkFacts) == CallThread::kMemoryThread);
  static_assert(longwire::CallRunsOn(CallId::lwSinkLinked) == CallThread::kLinkerThread);
}

TEST(Tables, NothingIsTrueOfNumbersThatAreNoCalls) {
  for (const int number : {0, 17, 22, 65535}) {
    const auto id = static_cast<CallId>(number);
    EXPECT_EQ(longwire::CallKind(id), longwire::CallKindValue::kUnsupported) << number;
    EXPECT_FALSE(longwire::CallIsPrivate(id) || longwire::WorksWhenFailed(id)) << number;
    EXPECT_STREQ(longwire::CallName(id), "?") << number;
  }
}

TEST(Tables, VersionsAndModes) {
  std::string rows;
  for (const auto& entry : shim::ProcTable()) {
    rows += std::string(entry.name) + " " + std::to_string(entry.introduced) + " " +
            std::to_string(entry.mode) + "\n";
  }
  EXPECT_NE(rows.find("cuSinkLocal 2000 0\ncuSinkLocal 3020 0\ncuSinkLocal 8000 2\n"),
            std::string::npos)
      << rows;
  EXPECT_NE(rows.find("cuSinkQueued 2000 0\ncuSinkQueued 7000 2\n"), std::string::npos) << rows;
  EXPECT_NE(rows.find("cuSinkRefused"), std::string::npos) << rows;
}

TEST(Tables, TheFakeDriverTakesNotes) {
  auto& fake = longwire::FakeDriver::Get();
  fake.Clear();
  fake.Set("cuSinkDestroy", CUDA_ERROR_UNKNOWN);
  EXPECT_EQ(fake.table().cuSinkDestroy(nullptr), CUDA_ERROR_UNKNOWN);
  EXPECT_EQ(fake.table().cuSinkWrapped_v2(nullptr), CUDA_SUCCESS);
  EXPECT_EQ(fake.Calls(), (std::vector<std::string>{"cuSinkDestroy", "cuSinkWrapped_v2"}));
}

TEST(Printer, OneReadableLine) {
  longwire::calls::lwSinkEverything call;
  longwire::calls::SinkRecord record;
  record.name = "kernel";
  record.number = 16;
  record.list = {1, 2};
  const std::byte data[3] = {};
  call.yes = true;
  call.data = data;
  call.numbers = {1, 255};
  call.names = {"a", "b\n"};
  call.records = {record};
  call.last = 0.5;
  longwire::wire::Writer writer;
  call.Encode(writer);
  EXPECT_EQ(writer.size(), call.EncodedBytes());
  EXPECT_EQ(longwire::PrintCall(call.kId, longwire::wire::Reader(writer.span())),
            "lwSinkEverything(yes=1, data=<3 bytes>, numbers=[0x1, 0xff], names=[\"a\", \"b.\"], "
            "records=[{name=\"kernel\", number=0x10, list=[1, 2]}], "
            "one={name=\"\", number=0x0, list=[]}, last=0.5)");
  const std::string cut =
      longwire::PrintCall(call.kId, longwire::wire::Reader(writer.span().first(20)));
  EXPECT_EQ(cut, "lwSinkEverything(yes=1, data=<3 bytes>, numbers=[0x1, …)");
}

}  // namespace
