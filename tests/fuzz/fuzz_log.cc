// What shares memory with a worker: the log and two lanes, into which the client writes any bytes,
// records with any header, pieces of copies that were announced or not, and cursors that do not
// fit.
#include <fuzzer/FuzzedDataProvider.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>

#include "server/worker/testing/test_session.h"
#include "tests/fuzz/strict_driver.h"
#include "wire/lane.h"
#include "wire/rings/ring_control.h"

namespace longwire::worker::testing {
namespace {

constexpr uint32_t kLanes = 2;
constexpr size_t kMaxSteps = 64;

class Client {
 public:
  explicit Client(FuzzedDataProvider& input) : input_(input) {
    session_.CreateStream(1);
    session_.CreateStream(2, StreamKind::kBlocking);
    session_.LoadFunction();
    for (int descriptor : session_.session->lanes().descriptors()) {
      lanes_.push_back(wire::RingMemory::Map(dup(descriptor)));
    }
  }

  void Run() {
    for (size_t i = 0; i < kMaxSteps && input_.remaining_bytes() != 0; ++i) {
      if (session_.up->closed() || session_.down->closed()) return;
      Step();
    }
    auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(10);
    while (session_.taken() < session_.sent() && !session_.over &&
           std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  }

 private:
  void Step() {
    switch (input_.ConsumeIntegralInRange(0, 9)) {
      case 0:
        return Falsify(*session_.up);
      case 1:
        return Falsify(*session_.down);
      case 2:
        return Falsify(*lanes_[input_.ConsumeIntegralInRange<size_t>(0, lanes_.size() - 1)]);
      case 3:
      case 4:
        return SendPiece();
      case 5:
        return Upload();
      case 6:
        session_.Launch(input_.ConsumeIntegralInRange(0, 3), 1);
        return;
      case 7:
        return Download();
      default:
        return SendRecord();
    }
  }

  uint64_t Number() {
    constexpr std::array<uint64_t, 6> kLimits = {
        UINT64_MAX, uint64_t{1} << 63, 4096, uint64_t{1} << 32, 1 << 20, UINT64_MAX - 63};
    switch (input_.ConsumeIntegralInRange(0, 3)) {
      case 0:
        return input_.PickValueInArray(kLimits);
      case 1:
        return input_.ConsumeIntegral<uint64_t>();
      default:
        return input_.ConsumeIntegral<uint8_t>() % 12;
    }
  }

  void Falsify(wire::RingMemory& ring) {
    wire::RingControl& control = ring.control();
    auto& cursor = input_.ConsumeBool() ? control.written : control.released;
    cursor = input_.ConsumeBool() ? Number() : cursor + Number();
    if (input_.ConsumeBool()) ring.PokeConsumer();
  }

  // A record of the log, whose size may be another one than it says.
  void SendRecord() {
    auto arguments = input_.ConsumeBytes<std::byte>(input_.ConsumeIntegral<uint8_t>());
    wire::RecordHeader header{};
    header.bytes = static_cast<uint32_t>(sizeof(header) + arguments.size());
    if (input_.ConsumeIntegral<uint8_t>() < 16) header.bytes = static_cast<uint32_t>(Number());
    header.call = input_.ConsumeIntegralInRange<uint16_t>(0, 640);
    header.flags = input_.ConsumeIntegral<uint8_t>() % 4;
    header.thread = static_cast<uint32_t>(Number());
    header.context = input_.ConsumeIntegral<uint8_t>() < 32 ? static_cast<uint32_t>(Number()) : 1;
    header.stream = Number();
    std::vector<std::byte> record(wire::AlignRecord(sizeof(header) + arguments.size()));
    std::memcpy(record.data(), &header, sizeof(header));
    std::copy(arguments.begin(), arguments.end(), record.begin() + sizeof(header));
    session_.Append(record);
  }

  // Announces a copy, whose bytes come as pieces, by the log or by lanes.
  void Upload() {
    calls::lwCopyToDevice copy;
    copy.bytes = input_.ConsumeIntegral<uint16_t>();
    copy.place = Linear(nullptr, copy.bytes);
    copy.place.address = 0x1000;
    copy.transfer = input_.ConsumeIntegral<uint8_t>() % 12;
    session_.Send(copy, 1);
  }

  void Download() {
    calls::lwCopyToHost copy;
    copy.bytes = input_.ConsumeIntegral<uint16_t>() * uint64_t{17};
    copy.place = Linear(nullptr, copy.bytes);
    copy.place.address = 0x1000;
    copy.transfer = input_.ConsumeIntegral<uint8_t>() % 12;
    session_.Send(copy, 1);
  }

  void SendPiece() {
    auto& ring = lanes_[2 * input_.ConsumeIntegralInRange<size_t>(0, lanes_.size() / 2 - 1)];
    auto bytes = input_.ConsumeBytes<std::byte>(input_.ConsumeIntegral<uint8_t>());
    wire::LaneHeader header;
    header.bytes = static_cast<uint32_t>(sizeof(header) + bytes.size());
    if (input_.ConsumeIntegral<uint8_t>() < 16) header.bytes = static_cast<uint32_t>(Number());
    header.in_slot = input_.ConsumeBool() ? 0 : static_cast<uint32_t>(Number());
    header.transfer = Number();
    header.offset = Number();
    header.slot = Number();
    wire::RingProducer log(ring);
    size_t room = wire::AlignLane(sizeof(header) + bytes.size());
    std::byte* to = log.Reserve(room);
    if (to == nullptr) return;
    std::memset(to, 0, room);
    std::memcpy(to, &header, sizeof(header));
    std::copy(bytes.begin(), bytes.end(), to + sizeof(header));
    log.Commit(room);
  }

  FuzzedDataProvider& input_;
  TestSession session_{fuzz::StrictDriver(), OneDevice(), -1, kLanes};
  std::vector<std::shared_ptr<wire::RingMemory>> lanes_;  // up and down of each
};

}  // namespace
}  // namespace longwire::worker::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  FuzzedDataProvider input(data, size);
  {
    longwire::worker::testing::FakeDriver streams;  // of the strict driver
    longwire::worker::testing::Client(input).Run();
  }
  longwire::fuzz::ForgetHandles();
  return 0;
}
