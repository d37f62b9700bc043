// A server that keeps no rule: the session ends with a sentence, and the program's memory stays.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <thread>

#include "client-shim/calls/graph/graph_node.h"
#include "client-shim/code/jit_options.h"
#include "client-shim/code/module.h"
#include "client-shim/memory/sharing.h"
#include "client-shim/mirror/host_memory.h"
#include "client-shim/mirror/mirrors.h"
#include "client-shim/session/session.h"
#include "client-shim/stream/callbacks.h"
#include "client-shim/testing/fake_session.h"
#include "codegen/runtime/convert.h"
#include "wire/page_delta.h"

namespace longwire::shim {
namespace {

using testing::Eventually;
using testing::kMiB;
using testing::Record;
using testing::Reply;
using wire::DownKind;

constexpr char kCode[] = ".version 8.0\n.target sm_90\n.address_size 64\n";

// A process has one session, and the statement ends it: it runs in a process of its own.
#define EXPECT_END(statement, sentence) \
  EXPECT_EXIT(                          \
      {                                 \
        statement;                      \
        ExitWhenOver();                 \
      },                                \
      ::testing::ExitedWithCode(0), "the session ends, because the server " sentence)

class DistrustTest : public testing::WithContext {
 protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    WithContext::SetUp();
    memory_.fill('p');
  }

  static void ExitWhenOver() {
    // Not session_over, which is set before the sentence is written.
    const testing::FakeSession& fake = testing::FakeSession::Get();
    for (int i = 0; i < 5000 && !fake.Ended(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    _exit(fake.Ended() ? 0 : 1);
  }
  // Until the client has read all that was sent: a reply stands behind it.
  void Settle() { EXPECT_EQ(Ask().code, CUDA_SUCCESS); }
  static Answer<calls::lwMemoryInfo> Ask() {
    calls::lwMemoryInfo ask;
    ask.device = 0;
    return TheSession().CallAndWait({}, ask);
  }

  HostPlace Place() { return HostPlace::Linear(memory_.data() + 8, 8); }
  uint64_t Expect(bool of_graph = false) {
    uint64_t transfer = TheSession().NewId();
    TheSession().transfers().ExpectDownload(transfer, Place(), of_graph);
    return transfer;
  }
  void Send(uint64_t transfer, uint64_t offset, std::string_view bytes) {
    fake_.SendRecord(DownKind::kData, 0, {transfer, offset}, bytes);
  }
  std::string_view memory() const { return {memory_.data(), memory_.size()}; }

  std::array<char, 24> memory_{};
};

TEST_F(DistrustTest, AnAnswerThatNobodyAwaits) {
  EXPECT_END(fake_.SendReply(0x12340, {}), "answered a call that awaits no answer");
}

TEST_F(DistrustTest, ProgressOfWhatWasNotQueued) {
  Stream* stream = NewTestStream();
  EXPECT_END(fake_.SendRecord(DownKind::kProgress, uint64_t{1} << 40, {stream->id}),
             "reported the end of work that was not queued");
  EXPECT_END(fake_.SendRecord(DownKind::kProgress, 0, {uint64_t{1} << 40}),
             "reported the end of work that was not queued");
}

TEST_F(DistrustTest, BytesOfNoTransfer) {
  EXPECT_END(Send(uint64_t{1} << 50, 0, "x"), "sent bytes that were not requested");
}

TEST_F(DistrustTest, BytesOutsideOfTheirTransfer) {
  EXPECT_END(Send(Expect(), 4, "12345"), "sent bytes that were not requested");
  EXPECT_END(Send(Expect(), UINT64_MAX - 1, "12345"), "sent bytes that were not requested");
}

TEST_F(DistrustTest, BytesComeOnce) {
  uint64_t transfer = Expect();
  Transfers& transfers = TheSession().transfers();
  auto arrives = [&](uint64_t offset, std::string_view bytes) {
    return transfers.Arrive(transfer, offset, std::as_bytes(std::span(bytes)));
  };
  EXPECT_TRUE(arrives(0, "1234"));
  EXPECT_FALSE(arrives(3, "xx"));
  EXPECT_FALSE(arrives(0, "x"));
  EXPECT_EQ(memory(), "pppppppp1234pppppppppppp");
  EXPECT_TRUE(arrives(4, "5678"));
  EXPECT_EQ(memory(), "pppppppp12345678pppppppp");
}

TEST_F(DistrustTest, NothingArrivesBehindTheEndOfItsCopy) {
  Stream* stream = NewTestStream();
  fake_.Hold(stream);
  uint64_t transfer = Expect();
  uint64_t position = Work(stream);
  TheSession().EndsWith(stream, position, {Ending::Kind::kDownload, transfer});
  Send(transfer, 0, "12");
  fake_.LetGo(stream);
  Send(transfer, 2, "xx");
  Settle();
  EXPECT_EQ(memory(), "pppppppp12pppppppppppppp");
  // One that had finished before.
  transfer = Expect();
  TheSession().EndsWith(stream, position, {Ending::Kind::kDownload, transfer});
  Send(transfer, 2, "xx");
  Settle();
  EXPECT_EQ(memory(), "pppppppp12pppppppppppppp");
}

TEST_F(DistrustTest, AGraphsBytesComeWhileItRuns) {
  EXPECT_END(Send(Expect(true), 0, "x"), "sent bytes that were not requested");
  TheSession().transfers().BeginGraphWrites();
  Send(Expect(true), 0, "12");
  Settle();
  TheSession().transfers().EndGraphWrites();
  EXPECT_EQ(memory(), "pppppppp12pppppppppppppp");
}

TEST_F(DistrustTest, ALandingOfMoreThanATransferHas) {
  EXPECT_END(fake_.SendRecord(DownKind::kLanding, 0, {Expect(), 9}),
             "sent bytes that were not requested");
}

TEST_F(DistrustTest, AnUploadIsRequestedOnce) {
  using Taken = Transfers::Taken;
  Transfers& transfers = TheSession().transfers();
  uint64_t transfer = TheSession().NewId();
  Transfers::Request request;
  transfers.OfferUpload(transfer, Place(), false);
  EXPECT_EQ(transfers.TakeUpload(transfer, &request), Taken::kNow);
  EXPECT_EQ(transfers.TakeUpload(transfer, &request), Taken::kTwice);
  transfers.UploadRead(transfer);
  EXPECT_EQ(transfers.TakeUpload(transfer, &request), Taken::kGone);
  EXPECT_END(fake_.SendRecord(DownKind::kPull, 0, {uint64_t{1} << 50}),
             "asked for bytes that are not on offer");
}

TEST_F(DistrustTest, ChangesThatNobodyAskedFor) {
  EXPECT_END(fake_.SendMirror(TheSession().NewId(), {}),
             "sent changes of memory that were not requested");
}

// A processor may refuse to store it at once.
TEST_F(DistrustTest, AWordThatIsNotAligned) {
  alignas(8) static std::array<char, 64> memory;
  auto answer = [this] {
    Mirror* mirror = nullptr;
    const auto address = reinterpret_cast<uint64_t>(memory.data());
    if (AddMirror(context_, {address, 0x10000, memory.size()}, MirrorStart::kZeroed, &mirror) !=
        CUDA_SUCCESS) {
      return;
    }
    fake_.OnCall<calls::lwMirrorPull>([this](const Record& record) {
      wire::ChangedWord word;
      word.offset = 4;
      word.bytes = 8;
      word.is[0] = std::byte{1};
      std::vector<std::byte> delta;
      wire::AppendWord(word, &delta);
      fake_.SendMirror(record.As<calls::lwMirrorPull>().mirror, delta);
      return Reply{};
    });
    Stream* stream = NewTestStream();
    { DeviceWork work(stream); }
    static_cast<void>(ReturnDeviceWrites());
  };
  EXPECT_END(answer(), "sent a word that is not aligned");
}

TEST_F(DistrustTest, AFunctionThatWasNotQueued) {
  EXPECT_END(fake_.SendRecord(DownKind::kHostFunction, 0, {uint64_t{1} << 50}),
             "called a function that was not queued");
  auto call = [](void* data) { static_cast<char*>(data)[0] = 'x'; };
  uint64_t ticket = NewHostFunction(call, memory_.data(), 0, true);
  EXPECT_END(fake_.SendRecord(DownKind::kHostFunction, 0, {ticket}),
             "called a function that was not queued");
}

TEST_F(DistrustTest, AFunctionDoesNotRunBehindItsEnd) {
  Stream* stream = NewTestStream();
  fake_.Hold(stream);
  auto call = [](void* data) { static_cast<char*>(data)[0] = 'x'; };
  uint64_t ticket = NewHostFunction(call, memory_.data(), 0, false);
  TheSession().EndsWith(stream, Work(stream), {Ending::Kind::kHostFunction, ticket});
  fake_.LetGo(stream);
  fake_.Take();
  fake_.SendRecord(DownKind::kHostFunction, 0, {ticket});
  while (fake_.TakeOnly<calls::lwHostFunctionDone>().empty()) std::this_thread::yield();
  EXPECT_EQ(memory_[0], 'p');
}

TEST_F(DistrustTest, MemoryOfNoDevice) {
  EXPECT_END(fake_.SendRecord(DownKind::kReclaim, 0, {1, 0, 0, 7}),
             "asked for memory of a device that it does not have");
}

TEST_F(DistrustTest, ConditionalNodesHaveTheBodiesThatWereAskedFor) {
  auto* graph = reinterpret_cast<CUgraph>((uint64_t{1} << 63) + 1);
  EXPECT_END(
      {
        CUgraphNode node = nullptr;
        CUDA_CONDITIONAL_NODE_PARAMS params{};
        params.size = 2;
        hand::AddConditionalNode(&node, graph, nullptr, 0, &params);
      },
      "made a conditional node with other bodies");
}

TEST_F(DistrustTest, GlobalsLieWhereTheProgramHasNothing) {
  CUmodule module = nullptr;
  ASSERT_EQ(LoadModule(kCode, {}, &module), CUDA_SUCCESS);
  auto look_up = [&](uint64_t place, GlobalKind kind) {
    fake_.OnCall<calls::lwModuleGlobal>([place](const Record&) {
      calls::lwModuleGlobal::Reply reply;
      reply.address = place;
      reply.bytes = 8;
      reply.managed = false;
      return Reply::With(reply);
    });
    uint64_t address = 0;
    size_t bytes = 0;
    return GlobalOf(FindModule(module), "x", kind, &address, &bytes);
  };
  ASSERT_EQ(RegisterHost(memory_.data(), memory_.size(), 0), CUDA_SUCCESS);
  auto start = reinterpret_cast<uint64_t>(memory_.data());
  uint64_t window = TheSession().opened().devices[0].window.base;
  EXPECT_END(look_up(start, GlobalKind::kAny), "put a variable into the program's memory");
  EXPECT_END(look_up(start - 4, GlobalKind::kAny), "put a variable into the program's memory");
  EXPECT_END(look_up(window, GlobalKind::kAny), "put a variable into the program's memory");
  EXPECT_END(look_up(UINT64_MAX, GlobalKind::kAny), "put a variable into the program's memory");
  EXPECT_END(look_up(4096, GlobalKind::kManaged), "put a variable into the program's memory");
  // What the driver has got cannot be registered later.
  ASSERT_EQ(UnregisterHost(memory_.data()), CUDA_SUCCESS);
  EXPECT_EQ(look_up(start + 8, GlobalKind::kAny), CUDA_SUCCESS);
  EXPECT_EQ(RegisterHost(memory_.data(), memory_.size(), 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(UnloadModule(FindModule(module)), CUDA_SUCCESS);
  EXPECT_EQ(RegisterHost(memory_.data(), memory_.size(), 0), CUDA_SUCCESS);
  EXPECT_EQ(UnregisterHost(memory_.data()), CUDA_SUCCESS);
}

TEST_F(DistrustTest, BorrowedMemoryHasSizesOfChunks) {
  auto borrow = [&](std::vector<uint64_t> sizes) {
    fake_.OnCall<calls::lwBorrow>([sizes](const Record&) {
      calls::lwBorrow::Reply reply;
      reply.device = 0;
      reply.chunk.resize(sizes.size());
      reply.bytes = sizes;
      return Reply::With(reply);
    });
    BorrowedChunks borrowed;
    return BorrowChunks({1, 2}, &borrowed);
  };
  EXPECT_EQ(borrow({2 * kMiB, 4 * kMiB}), CUDA_SUCCESS);
  EXPECT_END(borrow({}), "lent memory of an impossible size");
  EXPECT_END(borrow({3}), "lent memory of an impossible size");
  EXPECT_END(borrow({uint64_t{1} << 63, uint64_t{1} << 63}), "lent memory of an impossible size");
}

TEST(Distrust, ALogIsNoLongerThanItsBuffer) {
  char buffer[4] = "";
  CUjit_option option[] = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES};
  void* value[] = {buffer, reinterpret_cast<void*>(sizeof buffer)};
  calls::lwLinkAdd::Reply reply;
  reply.info_log = "longer than that";
  reply.outputs.place = {1};
  reply.outputs.value = {1000};
  JitOutputs({2, option, value}).Deliver(reply);
  EXPECT_STREQ(buffer, "lon");
  EXPECT_EQ(value[1], reinterpret_cast<void*>(sizeof buffer));
}

TEST(Distrust, AListHasNoMoreThanItsRoom) {
  int list = 0;
  EXPECT_TRUE(calls::FitsRoom(&list, size_t{3}, 3));
  EXPECT_FALSE(calls::FitsRoom(&list, size_t{3}, 4));
  EXPECT_FALSE(calls::FitsRoom(&list, size_t{3}, uint64_t{1} << 63));
  EXPECT_TRUE(calls::FitsRoom(nullptr, size_t{3}, 4));
}

}  // namespace
}  // namespace longwire::shim
