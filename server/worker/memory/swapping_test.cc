// A session on the software device whose memory its keeper wants; the test plays the keeper. The
// chunk's bytes stay where they are: what is shown is who lets go of it when, and has it again.
#include <gtest/gtest.h>

#include <cstring>
#include <future>

#include "server/worker/process/open_session.h"
#include "server/worker/testing/software_driver.h"
#include "server/worker/testing/test_session.h"

namespace longwire::worker::testing {
namespace {

using std::chrono::milliseconds;

constexpr uint64_t kOne = 11;
constexpr uint64_t kBytes = uint64_t{64} << 20;
constexpr uint64_t kChunk = 70;  // as the keeper counts

class Swapping : public ::testing::Test {
 protected:
  void SetUp() override {
    std::vector<Device> devices;
    std::string sentence;
    ASSERT_EQ(WarmDevices(driver_, {0}, {-1}, &devices, &sentence), CUDA_SUCCESS) << sentence;
    wire::Descriptor theirs;
    ASSERT_TRUE(wire::LocalPair(&keeper_, &theirs));
    devices[0].keeper = std::make_unique<KeeperClient>(theirs.Release());
    session_ = std::make_unique<TestSession>(driver_, std::move(devices));
    Say(keeper::SwapWatch{true});
    auto lease = std::async(std::launch::async, [this] { Lend(); });
    wire::OpenRequest request;
    request.windows = {{uint64_t{0x200000000000}, uint64_t{1} << 40},
                       {uint64_t{0x7e8000000000}, uint64_t{32} << 30},  // beside sanitizers
                       {uint64_t{0x500000000000}, uint64_t{1} << 40}};
    OpenSession(*session_->session, request, Driver().missing, &reply_);
    lease.get();
    ASSERT_EQ(reply_.code, 0) << reply_.sentence;
    address_ = reply_.devices[0].window.base;
    calls::lwMap map;
    map.address = address_;
    map.chunk = {reply_.devices[0].leased.at(0).chunk};
    EXPECT_EQ(session_->ExpectReply(session_->Send(map, 0, wire::kWantsReply)).header.code, 0);
    session_->CreateStream(kOne, StreamKind::kBlocking);
    Next<keeper::Note>();  // of the mapping
  }

  void TearDown() override {
    session_.reset();
    const wire::Window window = reply_.devices[0].window;
    driver_.cuMemUnmap(window.base, kBytes);
    driver_.cuMemAddressFree(window.base, window.bytes);
    driver_.cuMemRelease(handle_);
  }

  void Lend() {
    auto lease = Next<keeper::Lease>();
    driver_.cuCtxSetCurrent(session_->session->devices()[0].primary);
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    EXPECT_EQ(driver_.cuMemCreate(&handle_, kBytes, &properties, 0), CUDA_SUCCESS);
    keeper::Grant grant{lease.request, false, {{kChunk, kBytes}}};
    wire::Descriptor memory = Export();
    const int files[] = {memory.get()};
    EXPECT_TRUE(wire::SendMessage(keeper_.get(), message::Pack(grant), files));
  }

  wire::Descriptor Export() {
    int number = -1;
    EXPECT_EQ(driver_.cuMemExportToShareableHandle(&number, handle_,
                                                   CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
              CUDA_SUCCESS);
    return wire::Descriptor(number);
  }

  void GiveBack(uint64_t request) {
    wire::Descriptor memory = Export();
    const int files[] = {memory.get()};
    keeper::SwapReturned returned{request, 0, "", false, {{kChunk, kBytes}}};
    EXPECT_TRUE(wire::SendMessage(keeper_.get(), message::Pack(returned), files));
  }

  template <class M>
  void Say(const M& message) {
    EXPECT_TRUE(wire::SendMessage(keeper_.get(), message::Pack(message)));
  }

  // The next packet that is one, whatever the session says of its work between.
  template <class M>
  M Next() {
    M next;
    while (true) {
      auto packet = wire::ReceiveMessage(keeper_.get(), milliseconds(5000));
      if (packet && message::KindOf(packet->bytes) == keeper::Ran::kKind) {
        ++ran_;
        continue;
      }
      EXPECT_TRUE(packet && message::Unpack(packet->bytes, &next) == wire::WireResult::kOk)
          << "not a packet of kind " << M::kKind << " but "
          << (packet ? message::KindOf(packet->bytes) : 0);
      return next;
    }
  }

  bool Quiet() { return !wire::ReceiveMessage(keeper_.get(), milliseconds(60)).has_value(); }

  keeper::SwapAnswer Want(uint32_t patience = 2000) {
    Say(keeper::SwapOut{++wanted_, patience, {kChunk}});
    auto left = Next<keeper::SwapLeft>();
    EXPECT_EQ(left.request, wanted_);
    return static_cast<keeper::SwapAnswer>(left.answer);
  }

  // Until the session rests: its own answer may be "busy" while it is still about to.
  void WantUntilLeft() {
    session_->Until([this] { return Want() == keeper::SwapAnswer::kLeft; }, "the memory's leave");
  }

  uint64_t Upload(const std::vector<uint32_t>& numbers) {
    calls::lwCopyToDevice copy;
    copy.bytes = numbers.size() * 4;
    copy.place = Linear(reinterpret_cast<void*>(address_), copy.bytes);
    copy.data = std::as_bytes(std::span(numbers));
    return session_->Send(copy, kOne);
  }

  uint64_t Download(size_t count) {
    calls::lwCopyToHost copy;
    copy.bytes = count * 4;
    copy.place = Linear(reinterpret_cast<void*>(address_), copy.bytes);
    copy.transfer = 31;
    return session_->Send(copy, kOne);
  }

  std::vector<uint32_t> Data(size_t count) {
    DownRecord record = session_->Expect(wire::DownKind::kData);
    std::vector<uint32_t> numbers(count);
    EXPECT_EQ(record.payload.size(), 16 + count * 4);
    if (record.payload.size() == 16 + count * 4) {
      std::memcpy(numbers.data(), record.payload.data() + 16, count * 4);
    }
    return numbers;
  }

  bool IsMapped() {
    unsigned long long flags = 0;
    CUmemLocation location{CU_MEM_LOCATION_TYPE_DEVICE, 0};
    return driver_.cuMemGetAccess(&flags, &location, address_) == CUDA_SUCCESS && flags != 0;
  }

  const DriverTable& driver_ = Driver().table;
  wire::Descriptor keeper_;
  std::unique_ptr<TestSession> session_;
  wire::OpenReply reply_;
  CUmemGenericAllocationHandle handle_ = 0;
  uint64_t address_ = 0;
  uint64_t wanted_ = 0;
  size_t ran_ = 0;
};

TEST_F(Swapping, IdleMemoryLeavesAndIsThereForTheNextWork) {
  EXPECT_EQ(reply_.largest_chunk, uint64_t{512} << 20);
  const std::vector<uint32_t> numbers(64, 77);
  session_->ExpectProgress(kOne, Upload(numbers));
  for (int round = 0; round < 3; ++round) {
    WantUntilLeft();
    EXPECT_FALSE(IsMapped());
    uint64_t copied = Download(64);
    uint64_t request = Next<keeper::SwapBack>().request;
    EXPECT_TRUE(session_->Quiet(wire::DownKind::kData)) << "it ran without its memory";
    EXPECT_FALSE(IsMapped());
    GiveBack(request);
    EXPECT_EQ(Data(64), numbers);
    EXPECT_TRUE(IsMapped());
    session_->ExpectProgress(kOne, copied);
  }
}

TEST_F(Swapping, MemoryStaysWhileAnythingIsQueuedOrRunning) {
  calls::lwHostFunction host;
  host.ticket = 9;
  session_->Send(host, kOne);
  uint64_t copied = Upload(std::vector<uint32_t>(64, 5));
  session_->Expect(wire::DownKind::kHostFunction);
  EXPECT_EQ(Want(1), keeper::SwapAnswer::kBusy);
  EXPECT_EQ(Want(30), keeper::SwapAnswer::kBusy);
  EXPECT_TRUE(IsMapped());
  calls::lwHostFunctionDone done;
  done.ticket = 9;
  session_->Send(done);
  session_->ExpectProgress(kOne, copied);
  WantUntilLeft();
}

TEST_F(Swapping, ItLeavesAsSoonAsTheWorkIsDone) {
  calls::lwHostFunction host;
  host.ticket = 9;
  session_->Send(host, kOne);
  session_->Expect(wire::DownKind::kHostFunction);
  // Asked while it works, with patience until it does not.
  Say(keeper::SwapOut{++wanted_, 60'000, {kChunk}});
  calls::lwHostFunctionDone done;
  done.ticket = 9;
  session_->Send(done);
  auto answer = static_cast<keeper::SwapAnswer>(Next<keeper::SwapLeft>().answer);
  if (answer == keeper::SwapAnswer::kBusy) WantUntilLeft();  // it did not rest when it was asked
}

TEST_F(Swapping, ACaptureIsWork) {
  calls::lwCaptureBegin begin;
  EXPECT_EQ(session_->ExpectReply(session_->Send(begin, kOne, wire::kCapturing)).header.code, 0);
  EXPECT_EQ(Want(30), keeper::SwapAnswer::kBusy);
  calls::lwCaptureEnd end;
  end.graph = 50;
  EXPECT_EQ(session_->ExpectReply(session_->Send(end, kOne, wire::kCapturing)).header.code, 0);
  WantUntilLeft();
}

TEST_F(Swapping, BookkeepingGoesOnWithoutTheMemory) {
  WantUntilLeft();
  calls::lwMemoryInfo info;
  uint64_t asked = session_->Send(info);
  auto get = Next<keeper::GetInfo>();
  Say(keeper::Info{get.request, 1, 2, 3});
  EXPECT_EQ(session_->ExpectReply(asked).header.code, 0);
  calls::lwUnmap unmap;
  unmap.address = address_;
  unmap.bytes = kBytes;
  EXPECT_EQ(session_->ExpectReply(session_->Send(unmap, 0, wire::kWantsReply)).header.code, 0);
  Next<keeper::Note>();
  calls::lwReturnChunks back;
  back.chunk = {reply_.devices[0].leased[0].chunk};
  EXPECT_EQ(session_->ExpectReply(session_->Send(back, 0, wire::kWantsReply)).header.code, 0);
  EXPECT_EQ(Next<keeper::Return>().chunks, std::vector<uint64_t>{kChunk});
  // Nothing is away any more, so nothing waits.
  session_->CreateStream(12);
}

TEST_F(Swapping, AWaitingSessionCanEnd) {
  WantUntilLeft();
  Download(64);
  Next<keeper::SwapBack>();
  session_->up->Close(0);
  session_->Until([this] { return session_->over.load(); }, "the end");
}

TEST_F(Swapping, MemoryThatIsLostEndsTheSessionWithASentence) {
  WantUntilLeft();
  Download(64);
  Say(keeper::SwapReturned{Next<keeper::SwapBack>().request, 999, "it is lost", false, {}});
  EXPECT_NE(session_->Expect(wire::DownKind::kError).Text(0).find("it is lost"), std::string::npos);
}

TEST_F(Swapping, TheEndOfTheKeeperIsTheEndOfWhatItHas) {
  WantUntilLeft();
  keeper_.Reset();
  EXPECT_NE(session_->Expect(wire::DownKind::kError).Text(0).find("keeper"), std::string::npos);
}

TEST_F(Swapping, TheKeeperHearsThatTheSessionWorksButNotOften) {
  uint64_t last = 0;
  for (uint32_t i = 0; i < 200; ++i) last = Upload({i});
  session_->ExpectProgress(kOne, last);
  while (wire::ReceiveMessage(keeper_.get(), milliseconds(0))) ++ran_;
  EXPECT_GE(ran_, 1u);
  EXPECT_LT(ran_, 100u);
}

}  // namespace
}  // namespace longwire::worker::testing
