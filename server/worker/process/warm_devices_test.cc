// Contexts on a device of which the keeper has lent, or keeps, all.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "server/protocol/hello.h"
#include "server/worker/process/open_session.h"
#include "server/worker/testing/software_driver.h"
#include "server/worker/testing/test_session.h"

namespace longwire::worker::testing {
namespace {

constexpr uint64_t kContext = uint64_t{600} << 20;  // more or less what a driver takes

std::atomic<uint64_t> room{0};  // that the device has for contexts
DriverTable inner{};

CUresult RetainIfThereIsRoom(CUcontext* context, CUdevice device) {
  return room < kContext ? CUDA_ERROR_OUT_OF_MEMORY
                         : inner.cuDevicePrimaryCtxRetain(context, device);
}

// Gives a charge if it may, and so makes room.
class ChargingKeeper {
 public:
  explicit ChargingKeeper(bool gives) : gives_(gives) {
    EXPECT_TRUE(wire::LocalPair(&mine_, &theirs_));
    thread_ = std::thread([this] { Serve(); });
  }
  ~ChargingKeeper() { thread_.join(); }
  int TakeSocket() { return theirs_.Release(); }
  uint64_t charged() const { return charged_; }

 private:
  void Serve() {
    while (auto packet = wire::ReceiveMessage(mine_.get(), std::chrono::seconds(20))) {
      keeper::Borrow hello;
      keeper::Charge charge;
      keeper::Uncharge back;
      if (message::Unpack(packet->bytes, &hello) == wire::WireResult::kOk) {
        wire::SendMessage(mine_.get(), message::Pack(message::Hello{}));
      } else if (message::Unpack(packet->bytes, &charge) == wire::WireResult::kOk && gives_) {
        charged_ += charge.bytes;
        room = charge.bytes;
        wire::SendMessage(mine_.get(),
                          message::Pack(keeper::Charged{charge.request, charge.bytes}));
      } else if (message::Unpack(packet->bytes, &charge) == wire::WireResult::kOk) {
        wire::SendMessage(mine_.get(),
                          message::Pack(keeper::Refuse{charge.request, 2, "all is lent", 0}));
      } else if (message::Unpack(packet->bytes, &back) == wire::WireResult::kOk) {
        charged_ -= back.bytes;
      }
    }
  }

  const bool gives_;
  std::atomic<uint64_t> charged_{0};
  wire::Descriptor mine_, theirs_;
  std::thread thread_;
};

class WarmDevicesTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { inner = Driver().table; }
  void SetUp() override {
    table_ = inner;
    table_.cuDevicePrimaryCtxRetain = &RetainIfThereIsRoom;
  }

  CUresult Warm(ChargingKeeper* keeper) {
    std::vector<Device> devices;  // with their keepers' sockets they end here
    return WarmDevices(table_, {0}, {keeper->TakeSocket()}, &devices, &sentence_);
  }

  DriverTable table_{};
  std::string sentence_;
};

TEST_F(WarmDevicesTest, TheKeeperMakesRoomForAContext) {
  room = 0;
  ChargingKeeper keeper(true);
  EXPECT_EQ(Warm(&keeper), CUDA_SUCCESS) << sentence_;
  EXPECT_GE(room.load(), kContext);
}

TEST_F(WarmDevicesTest, NothingIsAskedWhereThereIsRoom) {
  room = kContext;
  ChargingKeeper keeper(true);
  EXPECT_EQ(Warm(&keeper), CUDA_SUCCESS) << sentence_;
  EXPECT_EQ(room.load(), kContext);
}

TEST_F(WarmDevicesTest, AFullDeviceSaysWhatToDo) {
  room = 0;
  ChargingKeeper keeper(false);
  EXPECT_EQ(Warm(&keeper), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(sentence_,
            "no context can be made on device 0: sessions, other programs and their contexts have "
            "all of its memory; end some of them");
}

}  // namespace
}  // namespace longwire::worker::testing
