// Memory that daemon and worker share for what a session's kernels did (kernel_statistics: of the
// configuration) and which of its rules were used. The worker counts, the daemon reads whenever it
// likes, also after the worker's end. Programs never see it.
//
// The worker's half is not trusted: the daemon bounds and copies each value once.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <tuple>

#include "wire/socket.h"

namespace longwire::statistics {

inline constexpr uint32_t kKernels = 256;    // of one session; further ones are counted together
inline constexpr uint32_t kPageRules = 128;  // as many as there can be (server/rules/rule.h)
inline constexpr size_t kNameBytes = 256;    // of a kernel; longer ones are cut
inline constexpr size_t kModuleBytes = 65;   // SHA-256 in digits

// Times are counted in four buckets for each power of two, from 256 ns on.
inline constexpr uint32_t kTimeBuckets = 128;
inline constexpr uint32_t kFirstOctave = 8;
constexpr uint32_t TimeBucket(uint64_t nanoseconds) {
  if (nanoseconds < (uint64_t{1} << kFirstOctave)) return 0;
  const auto octave = static_cast<uint32_t>(std::bit_width(nanoseconds)) - 1;
  const auto quarter = static_cast<uint32_t>(nanoseconds >> (octave - 2)) & 3;
  const uint32_t bucket = (octave - kFirstOctave) * 4 + quarter;
  return bucket < kTimeBuckets ? bucket : kTimeBuckets - 1;
}
// The least time in a bucket, and the least beyond it.
constexpr double BucketBegin(uint32_t bucket) {
  return static_cast<double>(uint64_t{1} << (kFirstOctave + bucket / 4)) *
         (1.0 + 0.25 * (bucket % 4));
}

// What the driver and its calculator say about a kernel with one block and shared memory.
struct KernelShape {
  uint32_t block[3] = {};
  uint32_t dynamic_shared = 0;   // bytes of a block
  uint32_t static_shared = 0;    // likewise
  uint32_t registers = 0;        // of a thread
  uint32_t local_bytes = 0;      // likewise
  uint32_t active_blocks = 0;    // of a multiprocessor at once
  uint32_t multiprocessors = 0;  // of the device; and of each of these:
  uint32_t threads_limit = 0;
  uint32_t blocks_limit = 0;
  uint32_t registers_limit = 0;
  uint32_t shared_limit = 0;
  uint32_t is_ptx = 0;  // 1: the driver compiled the module, so rules can limit its registers
};

// Of one kernel with one block and shared memory. The worker's log thread writes what does not
// change, then `ready`; it counts launches, the completion thread times.
struct alignas(64) KernelSlot {
  std::atomic<uint32_t> ready{0};
  KernelShape shape;
  char module[kModuleBytes] = {};
  char name[kNameBytes] = {};
  alignas(64) std::atomic<uint64_t> launches{0};
  std::atomic<uint64_t> blocks{0};       // of the launches that were timed
  std::atomic<uint64_t> timed{0};        // launches whose time on the device is known
  std::atomic<uint64_t> nanoseconds{0};  // of these
  std::atomic<uint64_t> queued{0};       // launches whose way to the driver is known
  std::atomic<uint64_t> queueing{0};     // nanoseconds of these, from the log to the driver
  std::atomic<uint64_t> begun{0};  // launches of which the way from the log to their start is known
  std::atomic<uint64_t> beginning{0};  // nanoseconds of these
  std::array<std::atomic<uint32_t>, kTimeBuckets> times{};
};

// What the session did beside its kernels.
enum class Count : uint32_t {
  kOtherLaunches,   // of kernels that have no slot
  kLegacyTurns,     // launches in the legacy stream behind launches of another, or the reverse
  kStreamLaunches,  // launches in contexts that have used more than one stream
  kGraphLaunches,
  kCopiesUp,  // of ordinary memory of the program, of at least kLargeCopy
  kBytesUp,
  kCopiesDown,
  kBytesDown,
  kPinnedCopies,  // of memory that is shared with the worker, of that size
  kPinnedBytes,
  // Launches behind a launch of their stream that had ended when they came, with no other call of
  // the stream between them.
  kLateLaunches,
  kCount
};
inline constexpr std::array<const char*, static_cast<size_t>(Count::kCount)> kCountNames = {
    "other_launches", "legacy_turns", "stream_launches", "graph_launches",
    "copies_up",      "bytes_up",     "copies_down",     "bytes_down",
    "pinned_copies",  "pinned_bytes", "late_launches"};
inline constexpr uint64_t kLargeCopy = uint64_t{64} << 10;

class Page {
 public:
  // nullptr on failure.
  static std::shared_ptr<Page> Create();
  // nullptr if the descriptor is no such page.
  static std::shared_ptr<Page> Map(wire::Descriptor memory);
  ~Page();
  Page(const Page&) = delete;
  Page& operator=(const Page&) = delete;

  // 1: kernels are counted; else rules alone. The daemon writes it, before it gives the page away.
  std::atomic<uint32_t>& kernels_on() { return content_->kernels_on; }
  KernelSlot& kernel(uint32_t index) { return content_->kernels[index % kKernels]; }
  std::atomic<uint64_t>& count(Count of) { return content_->counts[static_cast<size_t>(of)]; }
  // Launches that the rule with this place in the session's list has changed, checked or denied;
  // the log thread counts.
  std::atomic<uint64_t>& rule_launches(uint32_t index) {
    return content_->rule_launches[index % kPageRules];
  }
  // The same of modules and other calls; any thread counts.
  std::atomic<uint64_t>& rule_calls(uint32_t index) {
    return content_->rule_calls[index % kPageRules];
  }
  int descriptor() const { return memory_.get(); }
  // Once it was given away; what is mapped stays.
  void CloseDescriptor() { memory_.Reset(); }

 private:
  struct Content {
    uint64_t magic = 0;
    std::atomic<uint32_t> kernels_on{0};
    std::array<std::atomic<uint64_t>, static_cast<size_t>(Count::kCount)> counts{};
    std::array<std::atomic<uint64_t>, kPageRules> rule_launches{};
    std::array<std::atomic<uint64_t>, kPageRules> rule_calls{};
    KernelSlot kernels[kKernels];
  };
  Page() = default;
  bool Map();

  wire::Descriptor memory_;
  Content* content_ = nullptr;
};

// One writer each: no locked instruction.
inline void Add(std::atomic<uint64_t>& counter, uint64_t more) {
  counter.store(counter.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
}

// From the daemon to a worker, with the page's descriptor, or without one: nothing is counted any
// more. A worker of an earlier release ignores it.
struct Terms {
  static constexpr uint32_t kKind = 161;
  uint32_t version = 1;
  auto Fields() { return std::tie(version); }
};

}  // namespace longwire::statistics
