// A fixture: a session on the software device, with memory that a keeper of the test has lent.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "server/worker/process/open_session.h"
#include "server/worker/testing/software_driver.h"
#include "server/worker/testing/test_session.h"

namespace longwire::worker::testing {

constexpr uint64_t kOne = 11;  // a stream

// Answers one lease after the other with memory of the driver, as a keeper does.
class SmallKeeper {
 public:
  SmallKeeper(const DriverTable& driver, CUcontext context) : driver_(driver), context_(context) {
    EXPECT_TRUE(wire::LocalPair(&mine_, &theirs_));
    thread_ = std::thread([this] { Serve(); });
  }
  ~SmallKeeper() {
    theirs_.Reset();
    thread_.join();
  }
  int TakeSocket() { return theirs_.Release(); }

 private:
  void Serve() {
    driver_.cuCtxSetCurrent(context_);
    while (auto packet = wire::ReceiveMessage(mine_.get(), std::chrono::milliseconds(-1))) {
      keeper::Lease lease;
      if (message::Unpack(packet->bytes, &lease) != wire::WireResult::kOk) continue;
      keeper::Grant grant;
      grant.request = lease.request;
      std::vector<wire::Descriptor> memory;
      std::vector<int> numbers;
      for (uint64_t bytes : lease.bytes) {
        CUmemAllocationProp properties{};
        properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
        properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
        CUmemGenericAllocationHandle handle = 0;
        int number = -1;
        EXPECT_EQ(driver_.cuMemCreate(&handle, bytes, &properties, 0), CUDA_SUCCESS);
        EXPECT_EQ(driver_.cuMemExportToShareableHandle(&number, handle,
                                                       CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
                  CUDA_SUCCESS);
        memory.emplace_back(number);
        numbers.push_back(number);
        grant.chunks.push_back({++next_, bytes});
      }
      wire::SendMessage(mine_.get(), message::Pack(grant), numbers);
    }
  }

  const DriverTable& driver_;
  CUcontext context_;
  wire::Descriptor mine_, theirs_;
  uint64_t next_ = 0;
  std::thread thread_;
};

class SoftwareSession : public ::testing::Test {
 protected:
  void SetUp() override {
    DriverTable driver = Driver().table;
    Change(driver);
    std::string sentence;
    std::vector<Device> devices;
    ASSERT_EQ(WarmDevices(driver, {0}, {-1}, &devices, &sentence), CUDA_SUCCESS) << sentence;
    keeper_ = std::make_unique<SmallKeeper>(Driver().table, devices[0].primary);
    devices[0].keeper = std::make_unique<KeeperClient>(keeper_->TakeSocket());
    session_ = std::make_unique<TestSession>(driver, std::move(devices));
    wire::OpenRequest request;
    request.windows = {{uint64_t{0x200000000000}, uint64_t{1} << 40},
                       {uint64_t{0x7e8000000000}, uint64_t{32} << 30},  // beside sanitizers
                       {uint64_t{0x500000000000}, uint64_t{1} << 40}};
    OpenSession(*session_->session, request, Driver().missing, &reply_);
    ASSERT_EQ(reply_.code, 0) << reply_.sentence;
    ASSERT_EQ(reply_.devices.size(), 1u);
    ASSERT_EQ(reply_.devices[0].leased.size(), 1u);
    address_ = reply_.devices[0].window.base;
    calls::lwMap map;
    map.address = address_;
    map.chunk = {reply_.devices[0].leased[0].chunk};
    uint64_t position = session_->Send(map, 0, wire::kWantsReply);
    EXPECT_EQ(session_->ExpectReply(position).header.code, 0);
    session_->CreateStream(kOne, StreamKind::kBlocking);
  }
  void TearDown() override {
    const wire::Window window = reply_.devices[0].window;
    session_.reset();
    Driver().table.cuMemUnmap(window.base, reply_.devices[0].leased[0].bytes);
    Driver().table.cuMemAddressFree(window.base, window.bytes);
    keeper_.reset();
  }

  // What a test changes in the driver's functions.
  virtual void Change(DriverTable&) {}

  std::unique_ptr<SmallKeeper> keeper_;
  std::unique_ptr<TestSession> session_;
  wire::OpenReply reply_;
  uint64_t address_ = 0;
};

}  // namespace longwire::worker::testing
