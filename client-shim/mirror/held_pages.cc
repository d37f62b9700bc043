#include "client-shim/mirror/held_pages.h"

#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/memory_sizes.h"
#include "base/mutex.h"
#include "client-shim/mirror/file_mappings.h"
#include "client-shim/support/never_destroyed.h"
#include "client-shim/support/private_memory.h"
#include "client-shim/support/threads.h"
#include "client-shim/support/user_faults.h"
#include "wire/descriptors.h"
#include "wire/guards.h"

namespace longwire::shim {
namespace {

constexpr uint64_t kPage = base::kPageBytes;
// A range moves by whole tables, and large pages stay, where both places begin alike in these.
constexpr uint64_t kTable = uint64_t{2} << 20;
constexpr unsigned kUnshare = 1 << 1;                               // CLOSE_RANGE_UNSHARE
constexpr int kCold = 20, kPopulateRead = 22, kPopulateWrite = 23;  // MADV_…
constexpr useconds_t kRetry = 100;                                  // microseconds

// A child must not be made in the middle: it would have holes.
base::Mutex fork_mutex;
void BeforeFork() LONGWIRE_NO_THREAD_SAFETY_ANALYSIS { fork_mutex.Lock(); }
void AfterFork() LONGWIRE_NO_THREAD_SAFETY_ANALYSIS { fork_mutex.Unlock(); }

// Whole pages, by address; those that share a page are one.
std::vector<PageRange> WholePages(std::span<const PageRange> ranges) {
  std::vector<PageRange> sorted;
  for (const PageRange& range : ranges) {
    if (range.bytes == 0) continue;
    const uint64_t begin = base::RoundDown(range.address, kPage);
    sorted.push_back(
        {begin, base::RoundUp(range.address + range.bytes, kPage) - begin, range.may_be_shared});
  }
  std::ranges::sort(sorted, {}, &PageRange::address);
  std::vector<PageRange> pages;
  for (const PageRange& range : sorted) {
    if (pages.empty() || pages.back().address + pages.back().bytes <= range.address) {
      pages.push_back(range);
      continue;
    }
    PageRange& last = pages.back();
    last.bytes = std::max(last.bytes, range.address + range.bytes - last.address);
    last.may_be_shared = last.may_be_shared && range.may_be_shared;
  }
  return pages;
}

// Whether the process has locked any memory (mlock).
bool HasLocked() {
  constexpr std::string_view kLocked = "VmLck:";
  const std::string status = wire::ReadFile("/proc/self/status", 8192);
  const size_t at = status.find(kLocked);
  return at == std::string::npos || std::strtoull(&status[at + kLocked.size()], nullptr, 10) != 0;
}

// Locked memory would be counted twice after each move. The advice, which does no harm but that it
// splits a large page, is refused for it.
bool IsLocked(const HeldRange& range) {
  return madvise(reinterpret_cast<void*>(range.address), kPage, kCold) != 0 && errno == EINVAL;
}

// The parts of the ranges that lie in one mapping each. False where one cannot be held.
bool SplitByMappings(std::span<const PageRange> pages, HeldFor use,
                     std::vector<HeldRange>* ranges) {
  if (pages.empty()) return true;
  const uint64_t first = pages.front().address, last = pages.back().address + pages.back().bytes;
  const std::vector<ProcessMapping> mappings = MappingsOf(first, last - first);
  const bool any_locked = HasLocked();
  auto mapping = mappings.begin();
  for (const PageRange& range : pages) {
    for (uint64_t at = range.address; at < range.address + range.bytes;) {
      while (mapping != mappings.end() && mapping->end <= at) ++mapping;
      if (mapping == mappings.end() || mapping->begin > at) return false;
      const bool allowed =
          mapping->may_read() && (use == HeldFor::kReading || mapping->may_write());
      const bool shared = mapping->is_shared();
      const bool alone = shared ? range.may_be_shared : mapping->inode == 0;
      if (!allowed || !alone) return false;
      const uint64_t end = std::min(range.address + range.bytes, mapping->end);
      ranges->push_back({at, end - at, 0, shared});
      if (any_locked && IsLocked(ranges->back())) return false;
      at = end;
    }
  }
  return true;
}

// Free addresses to which ranges are moved.
class Elsewhere {
 public:
  // False: there are none.
  bool Reserve(std::span<HeldRange> ranges) {
    for (const HeldRange& range : ranges) bytes_ += range.bytes + kTable;
    bytes_ += kTable;
    void* begin =
        mmap(nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (begin == MAP_FAILED) return false;
    begin_ = reinterpret_cast<uint64_t>(begin);
    uint64_t at = begin_;
    for (HeldRange& range : ranges) {
      range.place = base::RoundDown(at, kTable) + range.address % kTable;
      if (range.place < at) range.place += kTable;
      at = range.place + range.bytes;
    }
    return true;
  }
  // What lies at the ranges' places is not ours any more, or perhaps not.
  void Return(std::span<const HeldRange> ranges, size_t gone) const {
    uint64_t at = begin_;
    for (const HeldRange& range : ranges.first(gone)) {
      if (range.place > at) munmap(reinterpret_cast<void*>(at), range.place - at);
      at = range.place + range.bytes;
    }
    if (begin_ + bytes_ > at) munmap(reinterpret_cast<void*>(at), begin_ + bytes_ - at);
  }

 private:
  uint64_t begin_ = 0, bytes_ = 0;
};

// Makes page tables of ranges wait for it.
class Holder {
 public:
  explicit Holder(int faults) : faults_(faults) {}

  HoldResult Run(std::span<const PageRange> asked, HeldFor use, HeldBody body, void* own) {
    std::vector<HeldRange> ranges;
    if (!SplitByMappings(WholePages(asked), use, &ranges)) return HoldResult::kNotNow;
    Elsewhere elsewhere;
    if (!table_.Reserve(ranges.size() * sizeof(HeldRange)) || !elsewhere.Reserve(ranges)) {
      return HoldResult::kNotNow;
    }
    auto* table = reinterpret_cast<HeldRange*>(table_.data());
    std::copy(ranges.begin(), ranges.end(), table);
    base::MutexLock lock(fork_mutex);
    size_t gone = 0;
    const bool done = Hold({table, ranges.size()}, use, body, own, &gone);
    lock.Unlock();
    elsewhere.Return({table, ranges.size()}, gone);
    return done ? HoldResult::kDone : HoldResult::kNotNow;
  }

 private:
  bool Hold(std::span<const HeldRange> ranges, HeldFor use, HeldBody body, void* own,
            size_t* gone) {
    size_t registered = 0, away = 0;
    while (registered < ranges.size() && Register(ranges[registered])) ++registered;
    const bool waits = registered == ranges.size();
    // From here on nothing of the program's memory may be touched, but at the elsewhere.
    while (waits && away < ranges.size() && Move(ranges[away])) ++away;
    // The place of one that could not be moved may be free already.
    *gone = waits ? std::min(ranges.size(), away + 1) : 0;
    bool held = waits && away == ranges.size();
    for (size_t i = 0; held && i < ranges.size(); ++i) held = Allows(ranges[i], use);
    if (held) body(HeldView(ranges), own);
    for (size_t i = away; i-- > 0;) PutBack(ranges[i]);
    for (size_t i = 0; i < registered; ++i) Release(ranges[i]);
    return held;
  }

  bool Register(const HeldRange& range) const {
    uint64_t modes = UFFDIO_REGISTER_MODE_MISSING;
    if (range.shared) modes |= UFFDIO_REGISTER_MODE_MINOR;  // pages that the file has
    uffdio_register wanted{{range.address, range.bytes}, modes, 0};
    return ioctl(faults_, UFFDIO_REGISTER, &wanted) == 0;
  }
  static bool Move(const HeldRange& range) {
    return mremap(reinterpret_cast<void*>(range.address), range.bytes, range.bytes,
                  MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP,
                  reinterpret_cast<void*>(range.place)) != MAP_FAILED;
  }
  // The program may have protected the pages since they were looked at. (Before Linux 5.14 that is
  // not found out.)
  static bool Allows(const HeldRange& range, HeldFor use) {
    const int advice = use == HeldFor::kReading ? kPopulateRead : kPopulateWrite;
    return madvise(reinterpret_cast<void*>(range.place), kPage, advice) == 0 || errno == EINVAL;
  }
  // Without room for another mapping the pages cannot be moved back: their bytes then are copied.
  // Whoever waits for them waits until it has succeeded.
  void PutBack(const HeldRange& range) const {
    while (mremap(reinterpret_cast<void*>(range.place), range.bytes, range.bytes,
                  MREMAP_MAYMOVE | MREMAP_FIXED,
                  reinterpret_cast<void*>(range.address)) == MAP_FAILED) {
      if (CopyBack(range)) {
        munmap(reinterpret_cast<void*>(range.place), range.bytes);
        return;
      }
      usleep(kRetry);
    }
  }
  bool CopyBack(const HeldRange& range) const {
    for (uint64_t at = 0; at < range.bytes; at += kPage) {
      uffdio_copy copy{range.address + at, range.place + at, kPage, UFFDIO_COPY_MODE_DONTWAKE, 0};
      if (ioctl(faults_, UFFDIO_COPY, &copy) != 0 && errno != EEXIST) return false;
    }
    return true;
  }
  void Release(const HeldRange& range) const {
    uffdio_range released{range.address, range.bytes};
    // Wakes whoever waits, also where the moved pages have brought their old mapping back.
    ioctl(faults_, UFFDIO_UNREGISTER, &released);
    ioctl(faults_, UFFDIO_WAKE, &released);
  }

  const int faults_;
  PrivateMemory table_;
};

bool IsSameFile(int one, int other) {
  struct stat of_one {
  }, of_other{};
  return fstat(one, &of_one) == 0 && fstat(other, &of_other) == 0 &&
         of_one.st_dev == of_other.st_dev && of_one.st_ino == of_other.st_ino;
}

struct Request {
  std::span<const PageRange> ranges;
  HeldFor use = HeldFor::kReading;
  HeldBody body = nullptr;
  void* own = nullptr;
};

// The thread.
class HoldingThread {
 public:
  // Whether it can hold pages.
  bool Start() {
    if (pthread_atfork(BeforeFork, AfterFork, AfterFork) != 0) return false;
    const wire::Descriptor mark = wire::MemoryFile("longwire-mark");
    base::MutexLock lock(mutex_);
    mark_ = mark.get();
    if (!mark.valid() ||
        !StartThread(
            "longwire-hold", [](void* self) { static_cast<HoldingThread*>(self)->Run(); }, this)) {
      return false;
    }
    while (stage_ == Stage::kStarting) changed_.Wait(lock);
    if (stage_ == Stage::kMarked) {
      // A system that knows the call may still not have done it.
      stage_ = IsSameFile(mark_, mark.get()) ? Stage::kEnded : Stage::kApart;
      changed_.NotifyAll();
    }
    while (stage_ == Stage::kApart) changed_.Wait(lock);
    return stage_ == Stage::kReady;
  }

  HoldResult Ask(const Request& request) {
    base::MutexLock lock(mutex_);
    while (request_ != nullptr) changed_.Wait(lock);
    const Request asked = request;
    HoldResult answer = HoldResult::kNotNow;
    request_ = &asked;
    answer_ = &answer;
    changed_.NotifyAll();
    while (request_ == &asked) changed_.Wait(lock);
    return answer;
  }

 private:
  enum class Stage { kStarting, kMarked, kApart, kReady, kEnded };

  void Run() {
    base::MutexLock lock(mutex_);
    // A descriptor that only this thread has, once its table is its own.
    const bool left = syscall(SYS_close_range, ~0U, ~0U, kUnshare) == 0;
    wire::Descriptor mark = left ? wire::Duplicate(mark_) : wire::Descriptor();
    mark_ = mark.get();
    Proceed(mark.valid() ? Stage::kMarked : Stage::kEnded);
    while (stage_ == Stage::kMarked) changed_.Wait(lock);
    if (stage_ == Stage::kEnded) return;
    mark.Release();
    syscall(SYS_close_range, 0U, ~0U, 0U);
    wire::SilenceStandardDescriptors();
    const int faults = OpenUserFaults().Release();
    Proceed(faults >= 0 ? Stage::kReady : Stage::kEnded);
    if (faults < 0) return;
    Holder holder(faults);
    while (true) {
      while (request_ == nullptr) changed_.Wait(lock);
      const Request request = *request_;
      const std::vector<PageRange> ranges(request.ranges.begin(), request.ranges.end());
      lock.Unlock();
      const HoldResult answer = holder.Run(ranges, request.use, request.body, request.own);
      lock.Lock();
      *answer_ = answer;
      request_ = nullptr;
      changed_.NotifyAll();
    }
  }
  void Proceed(Stage stage) LONGWIRE_REQUIRES(mutex_) {
    stage_ = stage;
    changed_.NotifyAll();
  }

  base::Mutex mutex_;  // without a rank: held while descriptors are opened
  base::CondVar changed_;
  Stage stage_ LONGWIRE_GUARDED_BY(mutex_) = Stage::kStarting;
  int mark_ LONGWIRE_GUARDED_BY(mutex_) = -1;
  const Request* request_ LONGWIRE_GUARDED_BY(mutex_) = nullptr;
  HoldResult* answer_ LONGWIRE_GUARDED_BY(mutex_) = nullptr;
};

HoldingThread& TheThread() {
  static NeverDestroyed<HoldingThread> thread;
  return *thread;
}

}  // namespace

bool MayHoldPages() {
  static const bool may = TheThread().Start();
  return may;
}

HoldResult WhileHeld(std::span<const PageRange> ranges, HeldFor use, HeldBody body, void* own) {
  static const bool holds = !wire::GuardIsOff("held_pages");
  if (!MayHoldPages()) return HoldResult::kNever;
  if (holds) return TheThread().Ask({ranges, use, body, own});
  constexpr HeldRange kInPlace{};
  body(HeldView({&kInPlace, 1}), own);
  return HoldResult::kDone;
}

}  // namespace longwire::shim
