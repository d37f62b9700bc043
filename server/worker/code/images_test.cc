// Where an image's bytes come from: the test is the client, and the daemon that keeps images.
#include "server/worker/code/images.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "server/images/sealed_memory.h"
#include "server/worker/testing/test_session.h"

namespace longwire::worker::testing {
namespace {

using wire::DownKind;
using wire::ImageKnowledge;

constexpr uint64_t kTransfer = 500;
const std::string kImage = "the kernels";

std::span<const std::byte> Bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

// What the driver was given last.
std::string& Loaded() {
  static std::string loaded;
  return loaded;
}

DriverTable Table() {
  DriverTable table = FakeDriver().table();
  table.cuModuleLoadDataEx = [](CUmodule* module, const void* image, unsigned, CUjit_option*,
                                void**) {
    Loaded() = static_cast<const char*>(image);
    *module = reinterpret_cast<CUmodule>(0x60);
    return CUDA_SUCCESS;
  };
  return table;
}

wire::Descriptor Sealed(const std::string& text) {
  wire::Descriptor memory = images::NewMemory();
  EXPECT_TRUE(images::WriteAll(memory.get(), Bytes(text)));
  EXPECT_TRUE(images::Seal(memory));
  return memory;
}

class ImagesTest : public ::testing::Test {
 protected:
  // With a daemon (the test) or without.
  void Begin(bool with_daemon) {
    Loaded().clear();
    wire::Descriptor worker_end;
    if (with_daemon) {
      ASSERT_TRUE(wire::LocalPair(&daemon_, &worker_end));
    }
    control_ = std::move(worker_end);
    session_ = std::make_unique<TestSession>(Table(), OneDevice(), control_.get());
    if (!with_daemon) return;
    reader_ = std::thread([this] {
      bool closed = false;
      while (!closed) {
        auto said = wire::ReceiveMessage(control_.get(), std::chrono::milliseconds(-1), &closed);
        if (said) session_->session->images().Arrived(std::move(*said));
      }
    });
  }
  ~ImagesTest() override {
    daemon_.Reset();
    if (reader_.joinable()) reader_.join();
    session_.reset();
  }

  uint64_t Load(bool on_offer) {
    wire::Digest digest = wire::Sha256Of(Bytes(kImage));
    calls::lwModuleLoad load;
    load.library = ++library_;
    load.transfer = kTransfer;
    load.bytes = kImage.size();
    load.attributes_device = -1;
    load.digest = digest;
    load.on_offer = on_offer;
    return session_->Send(load, 0, 0, 9);
  }
  void SendBytes() {
    calls::lwCopyData data;
    data.transfer = kTransfer;
    data.data = Bytes(kImage);
    session_->Send(data);
  }
  void ExpectLoaded(uint64_t position, ImageKnowledge knowledge) {
    DownRecord reply = session_->ExpectReply(position);
    EXPECT_EQ(reply.header.code, 0);
    calls::lwModuleLoad::Reply loaded;
    wire::Reader reader(reply.payload);
    EXPECT_EQ(loaded.Decode(reader), wire::WireResult::kOk);
    EXPECT_EQ(loaded.knowledge, static_cast<uint32_t>(knowledge));
    EXPECT_EQ(Loaded(), kImage);
  }
  void ExpectPull() {
    EXPECT_EQ(session_->Expect(DownKind::kPull).Number(), kTransfer);
    SendBytes();
  }

  // As the daemon.
  images::Find ExpectFind() {
    images::Find find;
    auto said = wire::ReceiveMessage(daemon_.get(), std::chrono::seconds(5));
    EXPECT_TRUE(said && message::Unpack(said->bytes, &find) == wire::WireResult::kOk);
    EXPECT_EQ(find.digest, wire::Hexadecimal(wire::Sha256Of(Bytes(kImage))));
    EXPECT_EQ(find.bytes, kImage.size());
    return find;
  }
  void Answer(const images::Found& found, const wire::Descriptor& memory = {}) {
    const int descriptor = memory.get();
    EXPECT_TRUE(wire::SendMessage(daemon_.get(), message::Pack(found),
                                  {&descriptor, memory.valid() ? size_t{1} : size_t{0}}));
  }
  void ExpectKeep() {
    images::Keep keep;
    auto said = wire::ReceiveMessage(daemon_.get(), std::chrono::seconds(5));
    ASSERT_TRUE(said && message::Unpack(said->bytes, &keep) == wire::WireResult::kOk);
    ASSERT_EQ(said->descriptors.size(), 1u);
    EXPECT_TRUE(images::IsSealed(said->descriptors[0], kImage.size()));
    std::string handed_over(kImage.size(), '\0');
    EXPECT_TRUE(
        images::ReadAll(said->descriptors[0], std::as_writable_bytes(std::span(handed_over))));
    EXPECT_EQ(handed_over, kImage);
  }

  wire::Descriptor daemon_, control_;
  std::unique_ptr<TestSession> session_;
  uint64_t library_ = 900;  // a number is never used again
  std::thread reader_;
};

TEST_F(ImagesTest, WithoutADaemonTheClientIsAsked) {
  Begin(false);
  uint64_t position = Load(true);
  ExpectPull();
  ExpectLoaded(position, ImageKnowledge::kNotKept);
}

TEST_F(ImagesTest, WhatTheDaemonKnowsIsNotPulled) {
  Begin(true);
  uint64_t position = Load(true);
  images::Find find = ExpectFind();
  EXPECT_TRUE(find.with_bytes);
  Answer({find.request, true, true}, Sealed(kImage));
  ExpectLoaded(position, ImageKnowledge::kKnown);
  EXPECT_TRUE(session_->Quiet(DownKind::kPull));
}

TEST_F(ImagesTest, WhatItDoesNotKnowIsPulledAndHandedOver) {
  Begin(true);
  uint64_t position = Load(true);
  Answer({ExpectFind().request, false, true});
  ExpectPull();
  ExpectLoaded(position, ImageKnowledge::kNew);
  ExpectKeep();
}

// The daemon that was asked has been killed.
TEST_F(ImagesTest, ANewDaemonAnswersNothingFromBefore) {
  Begin(true);
  uint64_t position = Load(true);
  ExpectFind();
  EXPECT_TRUE(wire::SendMessage(daemon_.get(), message::Pack(images::Forgotten{})));
  ExpectPull();
  ExpectLoaded(position, ImageKnowledge::kNew);
  ExpectKeep();
}

TEST_F(ImagesTest, WhatWasSentIsHandedOver) {
  Begin(true);
  SendBytes();
  uint64_t position = Load(false);
  images::Find find = ExpectFind();
  EXPECT_FALSE(find.with_bytes);
  Answer({find.request, false, true});
  ExpectLoaded(position, ImageKnowledge::kNew);
  ExpectKeep();
}

TEST_F(ImagesTest, OnlySealedMemoryOfTheRightSizeIsTaken) {
  Begin(true);
  uint64_t position = Load(true);
  Answer({ExpectFind().request, true, true}, Sealed("kernels of another length"));
  ExpectPull();
  ExpectLoaded(position, ImageKnowledge::kNew);
}

TEST_F(ImagesTest, ADaemonThatKeepsNothingIsAskedOnce) {
  Begin(true);
  for (bool asks : {true, false}) {
    uint64_t position = Load(true);
    if (asks) Answer({ExpectFind().request, false, false});
    ExpectPull();
    ExpectLoaded(position, ImageKnowledge::kNotKept);
    calls::lwModuleUnload unload;
    unload.library = library_;
    session_->Send(unload);
  }
  EXPECT_FALSE(wire::ReceiveMessage(daemon_.get(), std::chrono::milliseconds(50)));
}

TEST_F(ImagesTest, WithoutMemoryForItALoadIsRefused) {
  Begin(false);
  HostMemory::Share all(session_->session->host_memory(), HostUse::kImages);
  ASSERT_TRUE(all.Resize(wire::kMaxImageBytes - 200));
  SendBytes();
  EXPECT_EQ(session_->ExpectReply(Load(false)).header.code, CUDA_ERROR_OUT_OF_MEMORY);
  ASSERT_TRUE(all.Resize(wire::kMaxImageBytes));
  EXPECT_EQ(session_->ExpectReply(Load(true)).header.code, CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_TRUE(session_->Quiet(DownKind::kPull));
  EXPECT_NE(session_->Expect(DownKind::kText).Text(0).find("module images"), std::string::npos);
  all.Resize(0);
  SendBytes();
  ExpectLoaded(Load(false), ImageKnowledge::kNotKept);
}

// The client was asked and never sends: its session can still end.
TEST_F(ImagesTest, AnEndWhileBytesAreAwaited) {
  Begin(true);
  Load(true);
  ExpectFind();
}

TEST_F(ImagesTest, AnEndWhileTheClientIsAwaited) {
  Begin(false);
  Load(true);
  EXPECT_EQ(session_->Expect(DownKind::kPull).Number(), kTransfer);
}

}  // namespace
}  // namespace longwire::worker::testing
