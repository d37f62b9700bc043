#include "wire/view.h"

#include <gtest/gtest.h>

#include "wire/open.h"

namespace longwire::wire {
namespace {

ViewReply TwoDevices() {
  ViewReply reply;
  reply.driver_release = "580.95.05";
  for (int i = 0; i < 2; ++i) {
    ViewedDevice& device = reply.devices.emplace_back();
    device.name = "Device " + std::to_string(i);
    device.uuid[15] = static_cast<uint8_t>(i + 1);
    device.attributes = {{75, 9}, {76, i}};
    device.memory_total = 1 << 30;
    device.memory_reserved = 4096;
    device.memory_free = (1 << 20) + i;
    device.busy_percent = 100;
    device.peers = {static_cast<uint32_t>(1 - i)};
    device.atomic_peers = {7};
    device.links = {{3, 7, 1, 2, "00000000:87:00.0"}, {4, 7, 1, 0, ""}};
    device.processes = {{17, 4096, "/bin/one"}, {18, 8192, ""}};
  }
  return reply;
}

template <class Message>
std::vector<std::byte> Encoded(const Message& message) {
  Writer writer;
  message.Encode(writer);
  return {writer.data(), writer.data() + writer.size()};
}

TEST(View, ComesThroughWhole) {
  std::vector<std::byte> sent = Encoded(TwoDevices());
  ViewReply received;
  Reader reader(sent);
  ASSERT_EQ(received.Decode(reader), WireResult::kOk);
  EXPECT_EQ(reader.remaining(), 0u);
  EXPECT_EQ(Encoded(received), sent);
  EXPECT_EQ(received.devices[1].processes[0].program, "/bin/one");

  ViewRequest request;
  request.pid = 4711;
  request.host = "here";
  request.devices = "2";
  std::vector<std::byte> asked = Encoded(request);
  ViewRequest understood;
  Reader second(asked);
  ASSERT_EQ(understood.Decode(second), WireResult::kOk);
  EXPECT_EQ(Encoded(understood), asked);
}

TEST(View, EveryCutIsRefused) {
  std::vector<std::byte> sent = Encoded(TwoDevices());
  for (size_t length = 0; length < sent.size(); ++length) {
    std::vector<std::byte> cut(sent.begin(), sent.begin() + static_cast<std::ptrdiff_t>(length));
    ViewReply received;
    Reader reader(cut);
    EXPECT_EQ(received.Decode(reader), WireResult::kFatal) << length;
  }
}

TEST(View, FiguresThatCannotBeAreRefused) {
  ViewReply reply = TwoDevices();
  reply.devices[1].memory_free = reply.devices[1].memory_total - 4095;
  std::vector<std::byte> more_than_all = Encoded(reply);
  ViewReply received;
  Reader reader(more_than_all);
  EXPECT_EQ(received.Decode(reader), WireResult::kFatal);

  reply = TwoDevices();
  reply.devices[0].busy_percent = 101;
  std::vector<std::byte> too_busy = Encoded(reply);
  Reader second(too_busy);
  EXPECT_EQ(received.Decode(second), WireResult::kFatal);
}

TEST(View, ARequestIsToldFromAnOpening) {
  EXPECT_TRUE(IsViewRequest(Encoded(ViewRequest())));
  EXPECT_FALSE(IsViewRequest(Encoded(OpenRequest())));
  EXPECT_FALSE(IsViewRequest({}));
}

}  // namespace
}  // namespace longwire::wire
