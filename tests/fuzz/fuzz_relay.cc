// One end of a connection (link/transport/relay_end.h) among arbitrary frames, reads, writes and
// resumes: each log must come out of the rings as it went in, byte for byte.
#include <fuzzer/FuzzedDataProvider.h>

#include <cstdlib>

#include "link/transport/relay_end.h"

namespace {

using namespace longwire::transport;
namespace wire = longwire::wire;

constexpr size_t kRing = size_t{64} << 10;  // the smallest there is

// What stands at a position of either log.
std::byte ByteAt(uint64_t position) { return std::byte((position * 167 + (position >> 8)) & 0xff); }

// A few of these fill a ring.
size_t Bytes(FuzzedDataProvider& input) { return input.ConsumeIntegral<uint8_t>() * size_t{97}; }

std::vector<std::byte> LogBytes(uint64_t position, size_t bytes) {
  std::vector<std::byte> log(bytes);
  for (size_t i = 0; i < bytes; ++i) log[i] = ByteAt(position + i);
  return log;
}

void Check(uint64_t position, std::span<const std::byte> bytes) {
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != ByteAt(position + i)) std::abort();
  }
}

class Connection {
 public:
  // One thing that happens. False once the session has ended.
  bool Step(FuzzedDataProvider& input) {
    switch (input.ConsumeIntegralInRange(0, 4)) {
      case 0:
        return ReceiveFrame(input);
      case 1:
        return Write(Bytes(input));
      case 2:
        return SendBatch();
      case 3:
        return Read();
      default:
        return Resume(input);
    }
  }

 private:
  bool Resume(FuzzedDataProvider& input) {
    uint32_t epoch = relay_.epoch() + input.ConsumeIntegralInRange(0, 2);
    uint64_t position = relay_.sent() - input.ConsumeIntegral<uint16_t>();
    uint64_t consumed = position - input.ConsumeIntegral<uint16_t>();
    return relay_.StartEpoch(epoch, position, consumed) == WireResult::kOk;
  }
  bool ReceiveFrame(FuzzedDataProvider& input) {
    ReceivedFrame frame;
    // What came already, in part or whole; at times a gap.
    uint64_t position = relay_.received();
    uint64_t back = std::min<uint64_t>(input.ConsumeIntegral<uint16_t>(), position);
    frame.header.position = input.ConsumeBool() ? position - back : position + back;
    frame.header.ack = relay_.sent() - input.ConsumeIntegral<uint8_t>();
    frame.header.epoch = relay_.epoch();
    frame.bytes = Bytes(input);
    auto log = LogBytes(frame.header.position, frame.bytes);
    auto body = std::span<const std::byte>(log);
    size_t cut = input.ConsumeIntegralInRange<size_t>(0, frame.bytes);
    frame.body = {body.first(cut), body.subspan(cut)};
    return relay_.Take(frame) == WireResult::kOk;
  }

  bool Write(size_t bytes) {
    std::byte* to = writer_.Reserve(bytes);
    if (to == nullptr) return true;
    auto log = LogBytes(writer_.written(), bytes);
    std::copy(log.begin(), log.end(), to);
    writer_.Commit(bytes);
    return true;
  }

  bool SendBatch() {
    RelayEnd::Batch batch;
    if (relay_.Next(&batch)) Check(batch.header.position, batch.bytes);
    return true;
  }

  bool Read() {
    auto bytes = reader_.Available();
    Check(reader_.cursor(), bytes);
    reader_.Advance(bytes.size());
    reader_.Release(reader_.cursor());
    return true;
  }

  std::shared_ptr<wire::RingMemory> incoming_ = wire::RingMemory::Create(kRing);
  std::shared_ptr<wire::RingMemory> outgoing_ = wire::RingMemory::Create(kRing);
  RelayEnd relay_{incoming_, outgoing_};
  wire::RingConsumer reader_{incoming_};
  wire::RingProducer writer_{outgoing_};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  FuzzedDataProvider input(data, size);
  Connection connection;
  while (input.remaining_bytes() != 0 && connection.Step(input)) {
  }
  return 0;
}
