#include "server/gates/gate_page.h"

#include <linux/futex.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <new>

#include "wire/rings/segment.h"

namespace longwire::gates {
namespace {

constexpr uint64_t kMagic = 0x6574616765726977;

}  // namespace

struct GatePage::Header {
  uint64_t magic = kMagic;
  uint32_t devices = 0;
  std::atomic<uint64_t> bytes_in_flight{0};
  std::atomic<uint64_t> segment_bytes{0};
  std::atomic<uint64_t> awake{0};
  alignas(64) std::atomic<uint32_t> changes{1};
  std::atomic<uint32_t> heard{0};  // the count that the worker has acknowledged; 0: none yet
  std::atomic<uint64_t> awake_spent{0};
  std::atomic<uint32_t> has_rules{0};
  std::atomic<uint32_t> has_statistics{0};
  std::atomic<uint64_t> launch_policy{0};
};

namespace {

constexpr size_t kHeaderBytes = 128;

// What the latencies need stands behind the calls, where workers and daemons from before had room
// for numbers that no call has. Of each its counts, then the sum.
constexpr size_t kLatencyWords = kLatencyBounds.size() + 2;
constexpr size_t kCounters = 1024;
static_assert(kMaxCalls + kLatencies * kLatencyWords <= kCounters);
constexpr size_t kCallsBytes = kCounters * sizeof(uint64_t);
constexpr size_t kFirstGate = kHeaderBytes + kCallsBytes;

constexpr size_t PageBytes(uint32_t devices) { return kFirstGate + devices * sizeof(DeviceGate); }

void* MapMemory(int descriptor, size_t bytes) {
  void* page = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  return page == MAP_FAILED ? nullptr : page;
}

}  // namespace

std::shared_ptr<GatePage> GatePage::Create(uint32_t devices) {
  static_assert(sizeof(Header) <= kHeaderBytes);
  if (devices == 0 || devices > kMaxDevices) return nullptr;
  std::shared_ptr<GatePage> page(new GatePage());
  const size_t bytes = PageBytes(devices);
  page->memory_ = wire::MakeSegment("longwire-gates", bytes);
  page->bell_.Reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!page->memory_.valid() || !page->bell_.valid()) return nullptr;
  auto* memory = static_cast<std::byte*>(MapMemory(page->memory_.get(), bytes));
  if (memory == nullptr) return nullptr;
  page->header_ = new (memory) Header();
  page->header_->devices = devices;
  page->devices_ = devices;
  page->calls_ = new (memory + kHeaderBytes) std::atomic<uint64_t>[kCounters]();
  page->gates_ = reinterpret_cast<DeviceGate*>(memory + kFirstGate);
  for (uint32_t i = 0; i < devices; ++i) new (&page->gates_[i]) DeviceGate();
  return page;
}

std::shared_ptr<GatePage> GatePage::Map(wire::Descriptor memory, wire::Descriptor bell) {
  struct stat file {};
  if (fstat(memory.get(), &file) != 0) return nullptr;
  const auto bytes = static_cast<size_t>(file.st_size);
  if (!wire::IsSegment(memory.get(), bytes)) return nullptr;
  if (bytes < PageBytes(1) || bytes > PageBytes(kMaxDevices)) return nullptr;
  auto* mapped = static_cast<std::byte*>(MapMemory(memory.get(), bytes));
  if (mapped == nullptr) return nullptr;
  std::shared_ptr<GatePage> page(new GatePage());
  page->memory_ = std::move(memory);
  page->bell_ = std::move(bell);
  page->header_ = reinterpret_cast<Header*>(mapped);
  page->calls_ = reinterpret_cast<std::atomic<uint64_t>*>(mapped + kHeaderBytes);
  page->gates_ = reinterpret_cast<DeviceGate*>(mapped + kFirstGate);
  page->devices_ = page->header_->devices;
  bool good = page->header_->magic == kMagic && PageBytes(page->devices_) == bytes;
  if (!good) page->devices_ = static_cast<uint32_t>((bytes - kFirstGate) / sizeof(DeviceGate));
  return good ? page : nullptr;
}

GatePage::~GatePage() {
  if (header_ != nullptr) munmap(header_, PageBytes(devices_));
}

std::atomic<uint64_t>& GatePage::bytes_in_flight() { return header_->bytes_in_flight; }

std::atomic<uint64_t>& GatePage::segment_bytes() { return header_->segment_bytes; }

std::atomic<uint32_t>& GatePage::has_rules() { return header_->has_rules; }

std::atomic<uint32_t>& GatePage::has_statistics() { return header_->has_statistics; }

std::atomic<uint64_t>& GatePage::launch_policy() { return header_->launch_policy; }

std::atomic<uint64_t>& GatePage::awake() { return header_->awake; }

std::atomic<uint64_t>& GatePage::awake_spent() { return header_->awake_spent; }

void GatePage::Count(Latency latency, uint64_t nanoseconds) {
  std::atomic<uint64_t>* words = calls_ + kMaxCalls + static_cast<size_t>(latency) * kLatencyWords;
  words[LatencyBucket(nanoseconds)].fetch_add(1, std::memory_order_relaxed);
  words[kLatencyWords - 1].fetch_add(nanoseconds, std::memory_order_relaxed);
}

LatencyCounts GatePage::Counts(Latency latency) const {
  const std::atomic<uint64_t>* words =
      calls_ + kMaxCalls + static_cast<size_t>(latency) * kLatencyWords;
  LatencyCounts counts;
  for (size_t i = 0; i < counts.counts.size(); ++i) counts.counts[i] = words[i].load();
  counts.nanoseconds = words[kLatencyWords - 1].load();
  return counts;
}

void GatePage::AddLatencies(AllLatencies* sums) const {
  for (size_t i = 0; i < sums->size(); ++i) (*sums)[i].Add(Counts(static_cast<Latency>(i)));
}

void GatePage::OpenAll() {
  header_->awake = 0;
  for (uint32_t i = 0; i < devices_; ++i) {
    DeviceGate& gate = gates_[i];
    gate.budget_calls = gate.budget_microseconds = gate.copy_slice_bytes = gate.tell = 0;
    gate.closed = 0;
  }
  RingWorker();
}

void GatePage::RingWorker() {
  header_->changes.fetch_add(1);
  syscall(SYS_futex, &header_->changes, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

bool GatePage::Heard() const {
  uint32_t heard = header_->heard.load();
  return heard == 0 || heard == header_->changes.load();
}

uint32_t GatePage::WaitForChange(uint32_t seen) {
  if (seen != 0) header_->heard = seen;
  while (header_->changes.load() == seen && !closing_.load()) {
    syscall(SYS_futex, &header_->changes, FUTEX_WAIT, seen, nullptr, nullptr, 0);
  }
  return header_->changes.load();
}

void GatePage::Close() {
  closing_ = true;
  RingWorker();
}

bool GatePage::closed() const { return closing_.load(); }

void GatePage::RingDaemon() {
  uint64_t one = 1;
  // Full (2^64 signals pending) or gone: the daemon is notified already or does not exist.
  [[maybe_unused]] ssize_t written = write(bell_.get(), &one, sizeof(one));
}

void GatePage::Answer() {
  uint64_t rings = 0;
  [[maybe_unused]] ssize_t taken = read(bell_.get(), &rings, sizeof(rings));
}

uint64_t Nanoseconds() {
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch() /
                               std::chrono::nanoseconds(1));
}

uint64_t GpuTime(const DeviceGate& gate, uint64_t now) {
  uint64_t since = gate.running_since.load();
  uint64_t ended = gate.gpu_time.load();
  return since != 0 && now > since ? ended + (now - since) : ended;
}

}  // namespace longwire::gates
