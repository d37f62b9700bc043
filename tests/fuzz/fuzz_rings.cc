// A ring whose other end is hostile: the cursors, bells and flags in shared memory take any value
// between any two steps of this end. Nothing beside the ring is read or written, and this end's own
// cursors go forward only. Also memory files of any size and content in the place of a ring, a page
// of gates or one of a tenant's memory.
#include <fcntl.h>
#include <fuzzer/FuzzedDataProvider.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <source_location>

#include "server/gates/gate_page.h"
#include "server/gates/host_memory_page.h"
#include "wire/descriptors.h"
#include "wire/record.h"
#include "wire/rings/ring.h"
#include "wire/rings/ring_control.h"
#include "wire/rings/segment.h"

using namespace longwire;
using wire::RingConsumer;
using wire::RingMemory;
using wire::RingProducer;

namespace {

constexpr size_t kRing = size_t{64} << 10;

void Expect(bool good, std::source_location where = std::source_location::current()) {
  if (good) return;
  std::fprintf(stderr, "line %u: not so\n", where.line());
  std::abort();
}

class Ends {
 public:
  explicit Ends(FuzzedDataProvider& input) : input_(input) {
    // Also what it finds when it begins is the other end's.
    for (int i = input.ConsumeIntegralInRange(0, 4); i > 0; --i) Falsify();
    producer_.emplace(memory_);
    consumer_.emplace(memory_);
  }

  void Run() {
    while (input_.remaining_bytes() != 0) {
      switch (input_.ConsumeIntegralInRange(0, 7)) {
        case 0:
        case 1:
          Falsify();
          break;
        case 2:
          Write();
          break;
        case 3:
          Read();
          break;
        case 4:
          ReadRecords();
          break;
        case 5:
          consumer_->Release(Position(consumer_->cursor()));
          break;
        case 6:
          consumer_->Rewind(Position(consumer_->cursor()));
          break;
        default:
          Wait();
      }
    }
  }

 private:
  uint64_t Position(uint64_t near) {
    int kind = input_.ConsumeIntegralInRange(0, 2);
    if (kind == 0) return input_.ConsumeIntegral<uint64_t>();
    return near + (kind == 1 ? 1 : -1) * uint64_t{input_.ConsumeIntegral<uint32_t>() % (3 * kRing)};
  }

  void Falsify() {
    wire::RingControl& control = memory_->control();
    switch (input_.ConsumeIntegralInRange(0, 6)) {
      case 0:
      case 1:
        control.written = Position(control.written);
        break;
      case 2:
      case 3:
        control.released = Position(control.released);
        break;
      case 4:
        control.closed = input_.ConsumeBool() ? 0 : input_.ConsumeIntegral<uint32_t>();
        break;
      case 5:
        control.bytes = input_.ConsumeIntegral<uint64_t>();
        break;
      default:
        control.rests = control.consumer_sleeping = control.producer_sleeping =
            control.consumer_pokes = input_.ConsumeIntegral<uint32_t>();
    }
  }

  // Within the two mappings of the data, one behind the other.
  void CheckPlace(const std::byte* place, size_t bytes) {
    Expect(bytes <= kRing && place >= memory_->data());
    Expect(static_cast<size_t>(place - memory_->data()) < kRing);
  }

  void Write() {
    size_t bytes = input_.ConsumeIntegral<uint32_t>() % (2 * kRing);
    std::byte* place = producer_->Reserve(bytes);
    if (place == nullptr) return;
    CheckPlace(place, bytes);
    std::memset(place, 'x', bytes);
    producer_->Commit(bytes);
  }

  void Read() {
    auto bytes = consumer_->Available();
    CheckPlace(bytes.data() == nullptr ? memory_->data() : bytes.data(), bytes.size());
    if (bytes.empty()) return;
    for (const std::byte* end : {&bytes.front(), &bytes.back()}) {
      (void)*static_cast<const volatile std::byte*>(end);  // may be read
    }
    size_t step = input_.ConsumeIntegralInRange<size_t>(0, bytes.size());
    uint64_t before = consumer_->cursor();
    consumer_->Advance(step);
    Expect(consumer_->cursor() >= before);
  }

  void ReadRecords() {
    auto log = consumer_->Available();
    // The other end writes sizes.
    if (log.size() >= sizeof(uint32_t)) {
      uint32_t size = input_.ConsumeIntegral<uint16_t>();
      std::memcpy(const_cast<std::byte*>(log.data()), &size, sizeof(size));
    }
    wire::RecordHeader header;
    size_t bytes = 0;
    while (wire::PeekRecord(log, &header, &bytes) == wire::WireResult::kOk && bytes != 0) {
      Expect(bytes >= sizeof(header) && wire::AlignRecord(bytes) <= log.size());
      log = log.subspan(wire::AlignRecord(bytes));
      consumer_->Advance(wire::AlignRecord(bytes));
    }
  }

  void Wait() {
    auto now = std::chrono::steady_clock::now();
    if (input_.ConsumeBool()) {
      producer_->WaitForSpace(input_.ConsumeIntegral<uint32_t>() % (2 * kRing), now);
    } else {
      consumer_->WaitBeyond(Position(consumer_->cursor()), {}, now);
    }
    producer_->GiveBack();
    if (consumer_->ToldToRest()) consumer_->Rested();
  }

  FuzzedDataProvider& input_;
  std::shared_ptr<RingMemory> memory_ = RingMemory::Create(kRing);
  std::optional<RingProducer> producer_;
  std::optional<RingConsumer> consumer_;
};

// A file of the other process's, in the place of one of ours.
void MapForeign(FuzzedDataProvider& input) {
  constexpr std::array<uint64_t, 8> kSizes = {
      0, 1, 4096, 4096 + kRing, 8448, 32792, 4096 + kRing / 2, 12352};
  uint64_t size = input.PickValueInArray(kSizes);
  if (input.ConsumeBool()) size = input.ConsumeIntegralInRange<uint64_t>(0, 3 * kRing);
  wire::Descriptor file;
  if (input.ConsumeBool()) {
    file = wire::MakeSegment("foreign", size);
  } else {
    file = wire::MemoryFile("foreign", MFD_ALLOW_SEALING);
    Expect(ftruncate(file.get(), static_cast<off_t>(size)) == 0);
  }
  int kind = input.ConsumeIntegralInRange(0, 2);
  auto content = input.ConsumeRemainingBytes<uint8_t>();
  content.resize(std::min<size_t>(content.size(), size));
  void* memory = size == 0 ? MAP_FAILED
                           : mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (memory != MAP_FAILED) {
    std::copy(content.begin(), content.end(), static_cast<uint8_t*>(memory));
    munmap(memory, size);
  }
  if (kind == 0) {
    if (auto ring = RingMemory::Map(file.Release())) Expect(ring->bytes() + 4096 == size);
  } else if (kind == 1) {
    auto page = gates::GatePage::Map(std::move(file), {});
    for (uint32_t i = 0; page != nullptr && i < page->devices(); ++i) page->device(i).closed = 1;
  } else if (auto page = gates::HostMemoryPage::Map(std::move(file))) {
    page->used(gates::HostMemoryPage::kSlots - 1) = page->Sum();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  FuzzedDataProvider input(data, size);
  if (input.ConsumeIntegral<uint8_t>() < 64) {
    MapForeign(input);
  } else {
    Ends(input).Run();
  }
  return 0;
}
