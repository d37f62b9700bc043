#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <new>

#include "base/memory_sizes.h"
#include "wire/descriptors.h"
#include "wire/rings/ring.h"
#include "wire/rings/ring_control.h"
#include "wire/rings/segment.h"

namespace longwire::wire {
namespace {

constexpr size_t kControlBytes = base::kPageBytes;
constexpr size_t kMinRingBytes = size_t{64} << 10;
constexpr size_t kMaxRingBytes = size_t{1} << 30;

bool IsRingSize(size_t bytes) {
  return bytes >= kMinRingBytes && bytes <= kMaxRingBytes && (bytes & (bytes - 1)) == 0;
}

// Maps the data pages twice in a row; nullptr on failure.
std::byte* MapTwice(int descriptor, size_t bytes) {
  void* range =
      mmap(nullptr, 2 * bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) return nullptr;
  auto* data = static_cast<std::byte*>(range);
  for (std::byte* half : {data, data + bytes}) {
    if (mmap(half, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, descriptor,
             kControlBytes) == MAP_FAILED) {
      munmap(range, 2 * bytes);
      return nullptr;
    }
  }
  return data;
}

RingControl* MapControl(int descriptor) {
  void* page = mmap(nullptr, kControlBytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  return page == MAP_FAILED ? nullptr : static_cast<RingControl*>(page);
}

void Wake(std::atomic<uint32_t>& bell) {
  bell.fetch_add(1, std::memory_order_seq_cst);
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&bell), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace

std::shared_ptr<RingMemory> RingMemory::Create(size_t bytes) {
  if (!IsRingSize(bytes)) return nullptr;
  int descriptor = MakeSegment("longwire-ring", kControlBytes + bytes).Release();
  if (descriptor < 0) return nullptr;
  std::shared_ptr<RingMemory> memory(new RingMemory());
  memory->descriptor_ = descriptor;
  memory->control_ = MapControl(descriptor);
  if (memory->control_ == nullptr) return nullptr;
  memory->bytes_ = bytes;
  memory->data_ = MapTwice(descriptor, bytes);
  if (memory->data_ == nullptr) return nullptr;
  new (memory->control_) RingControl();
  memory->control_->magic = RingControl::kMagic;
  memory->control_->bytes = bytes;
  return memory;
}

std::shared_ptr<RingMemory> RingMemory::Map(int descriptor) {
  std::shared_ptr<RingMemory> memory(new RingMemory());
  memory->descriptor_ = descriptor;
  // Without the seals the other side could shrink the file under a reader.
  struct stat file {};
  if (fstat(descriptor, &file) != 0) return nullptr;
  const auto whole = static_cast<size_t>(file.st_size);
  if (!IsSegment(descriptor, whole)) return nullptr;
  const size_t bytes = whole - kControlBytes;
  if (whole < kControlBytes || !IsRingSize(bytes)) return nullptr;
  memory->control_ = MapControl(descriptor);
  if (memory->control_ == nullptr || memory->control_->magic != RingControl::kMagic ||
      memory->control_->bytes != bytes) {
    return nullptr;
  }
  memory->bytes_ = bytes;
  memory->data_ = MapTwice(descriptor, bytes);
  return memory->data_ == nullptr ? nullptr : memory;
}

RingMemory::~RingMemory() {
  if (data_ != nullptr) munmap(data_, 2 * bytes_);
  if (control_ != nullptr) munmap(control_, kControlBytes);
  if (descriptor_ >= 0) close(descriptor_);
}

void RingMemory::Close(uint32_t code) {
  uint32_t open = 0;
  control_->closed.compare_exchange_strong(open, code + 1);
  PokeConsumer();
  PokeProducer();
}

bool RingMemory::closed() const { return control_->closed.load(std::memory_order_acquire) != 0; }

uint32_t RingMemory::close_code() const {
  uint32_t closed = control_->closed.load(std::memory_order_acquire);
  return closed == 0 ? 0 : closed - 1;
}

size_t RingMemory::kept() const {
  const uint64_t released = control_->released.load(std::memory_order_acquire);
  const uint64_t written = control_->written.load(std::memory_order_acquire);
  return written > released ? static_cast<size_t>(std::min<uint64_t>(written - released, bytes_))
                            : 0;
}

void RingMemory::PokeConsumer() {
  control_->consumer_pokes.fetch_add(1, std::memory_order_seq_cst);
  Wake(control_->data_bell);
}

void RingMemory::PokeProducer() { Wake(control_->space_bell); }

void RingMemory::ReplaceProducer() {
  control_->producer_sleeping = 0;
  PokeConsumer();
}

void RingMemory::ReplaceConsumer() {
  control_->consumer_sleeping = 0;
  PokeProducer();
}

}  // namespace longwire::wire
