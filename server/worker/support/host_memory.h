// How much of the host's memory the worker holds for its session, by what it is for. One counter of
// atomic numbers: whoever keeps bytes for the client takes them here first, and what the limits do
// not allow is refused with CUDA_ERROR_OUT_OF_MEMORY and a sentence.
//
// Limits: the session's (session_host_memory), all sessions' of its tenant (host_memory), and one
// for each use.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "server/gates/host_memory_page.h"

namespace longwire::worker {

// Of one session: a quarter of the largest image for all inputs of links, which stay as long as
// their link; answers of a client that does not read; graphs' copies of the program's memory; 128
// streams' copies at once.
inline constexpr uint64_t kMaxLinkBytes = uint64_t{512} << 20;
inline constexpr uint64_t kMaxAnswerBytes = uint64_t{256} << 20;
inline constexpr uint64_t kMaxGraphBytes = uint64_t{4} << 30;
inline constexpr uint64_t kMaxStagingBytes = uint64_t{1} << 30;

enum class HostUse : uint32_t {
  kCalls,    // calls that wait; bytes_in_flight bounds them
  kUploads,  // bytes of copies that wait; bytes_in_flight bounds them, too
  kAnswers,  // what the client has not read
  kImages,   // module images on their way to the driver
  kLinks,    // inputs of links
  kModules,  // images of loaded modules, which the driver keeps
  kGraphs,   // pinned memory that stands for the program's in graphs
  kStaging,  // pinned memory through which copies pass
  kPinned,   // the program's pinned memory, which it shares with the worker
  kMirrors,  // what the program's memory was last, where device and program share it
};

class HostMemory {
 public:
  // Called with a sentence when a limit was met, once for each use.
  using Say = std::function<void(const std::string& sentence)>;

  explicit HostMemory(Say say) : say_(std::move(say)) {}
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;

  // Once, when the daemon has told the limits. Without it those of each use hold alone.
  void Join(const gates::HostMemoryTerms& terms, std::shared_ptr<gates::HostMemoryPage> page);

  // False, and nothing is taken, if a limit does not allow it.
  bool Take(HostUse use, uint64_t bytes);
  void Give(HostUse use, uint64_t bytes);
  // For what is bounded elsewhere: it is counted, and never refused.
  void Set(HostUse use, uint64_t bytes);

  // False if the session has as many modules as it may.
  bool MayLoad(size_t modules);

  uint64_t used(HostUse use) const { return uses_[static_cast<size_t>(use)].bytes.load(); }
  uint64_t used() const { return all_.load(); }

  // A part that its owner holds.
  class Share {
   public:
    Share() = default;
    Share(Share&& other) noexcept { *this = std::move(other); }
    Share& operator=(Share&& other) noexcept {
      std::swap(memory_, other.memory_);
      std::swap(use_, other.use_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~Share() { Resize(0); }

    // An empty share of this use.
    Share(HostMemory& memory, HostUse use) : memory_(&memory), use_(use) {}
    // False, and it stays as large as it is, if a limit does not allow it.
    bool Resize(uint64_t bytes);
    uint64_t bytes() const { return bytes_; }

   private:
    HostMemory* memory_ = nullptr;
    HostUse use_ = HostUse::kCalls;
    uint64_t bytes_ = 0;
  };

 private:
  struct Use {
    std::atomic<uint64_t> bytes{0};
    std::atomic<bool> said{false};
  };
  struct Joined {
    gates::HostMemoryTerms terms;
    std::shared_ptr<gates::HostMemoryPage> page;
  };
  void Change(HostUse use, uint64_t more, uint64_t less);
  void Publish();
  // Empty if the limits allow what is taken now.
  std::string Excess(HostUse use) const;
  void SayOnce(HostUse use, const std::string& sentence);

  const Say say_;
  std::array<Use, 10> uses_;
  std::atomic<uint64_t> all_{0};
  std::unique_ptr<const Joined> held_;
  std::atomic<const Joined*> joined_{nullptr};
};

}  // namespace longwire::worker
