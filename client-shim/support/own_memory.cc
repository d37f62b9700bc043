#include "client-shim/support/own_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>

#include "base/lock_ranks.h"
#include "base/memory_sizes.h"
#include "base/mutex.h"
#include "client-shim/connect/options.h"
#include "client-shim/support/holding.h"
#include "client-shim/support/never_destroyed.h"

namespace longwire::shim {

std::atomic<size_t> file_memory_ranges{0};

namespace {

struct FileRange {
  uint64_t address = 0, bytes = 0;
  std::atomic<int>* once = nullptr;
  int error = 0;
  bool said = false;
};

struct FileRanges {
  base::Mutex mutex{base::ranks::kFileMemory};
  std::map<uint64_t, FileRange> by_address LONGWIRE_GUARDED_BY(mutex);
};

FileRanges& TheFileRanges() {
  static NeverDestroyed<FileRanges> ranges;
  return *ranges;
}

// Whether any noted range has one of the bytes.
bool Touches(uint64_t address, uint64_t bytes) {
  FileRanges& ranges = TheFileRanges();
  base::MutexLock lock(ranges.mutex);
  if (Holding(ranges.by_address, address) != ranges.by_address.end()) return true;
  const auto next = ranges.by_address.lower_bound(address);
  return next != ranges.by_address.end() && next->first < address + bytes;
}

using Move = ssize_t (*)(pid_t, const iovec*, unsigned long, const iovec*, unsigned long,
                         unsigned long);

// Of this process, with `other` as the side that may be gone. False: it is.
bool MoveAll(Move move, const iovec& own, const iovec& other) {
  for (size_t done = 0; done < other.iov_len;) {
    const iovec here{static_cast<std::byte*>(own.iov_base) + done, other.iov_len - done};
    const iovec there{static_cast<std::byte*>(other.iov_base) + done, other.iov_len - done};
    const ssize_t moved = move(getpid(), &here, 1, &there, 1, 0);
    if (moved <= 0) return false;
    done += static_cast<size_t>(moved);
  }
  return true;
}

}  // namespace

bool ReadOwnMemory(const std::vector<iovec>& ranges, const std::vector<iovec>& targets) {
  constexpr size_t kRangesAtOnce = 256;
  const pid_t self = getpid();
  for (size_t i = 0; i < ranges.size(); i += kRangesAtOnce) {
    const size_t count = std::min(kRangesAtOnce, ranges.size() - i);
    size_t bytes = 0;
    for (size_t k = i; k < i + count; ++k) bytes += ranges[k].iov_len;
    const ssize_t read = process_vm_readv(self, &targets[i], count, &ranges[i], count, 0);
    if (read < 0 || static_cast<size_t>(read) != bytes) return false;
  }
  return true;
}

bool MayWriteOwnMemory(uint64_t address) {
  const uint64_t page = base::RoundDown(address, base::kPageBytes);
  if (madvise(reinterpret_cast<void*>(page), base::kPageBytes, MADV_POPULATE_WRITE) == 0) {
    return true;
  }
  // EINVAL also says that the kernel does not know the advice: then not about a page of ours,
  // either.
  alignas(base::kPageBytes) static std::byte own[base::kPageBytes];
  static const bool known = madvise(own, base::kPageBytes, MADV_POPULATE_WRITE) == 0;
  return !known;
}

bool ReadFileMemory(const void* from, void* to, size_t bytes) {
  if (MoveAll(&process_vm_readv, {to, bytes}, {const_cast<void*>(from), bytes})) return true;
  if (errno == EFAULT) return false;
  std::memcpy(to, from, bytes);
  return true;
}

bool WriteFileMemory(const void* from, void* to, size_t bytes) {
  if (MoveAll(&process_vm_writev, {const_cast<void*>(from), bytes}, {to, bytes})) return true;
  if (errno == EFAULT) return false;
  std::memcpy(to, from, bytes);
  return true;
}

void NoteFileMemory(uint64_t address, uint64_t bytes, std::atomic<int>* once, int error) {
  FileRanges& ranges = TheFileRanges();
  base::MutexLock lock(ranges.mutex);
  ranges.by_address[address] = {address, bytes, once, error};
  file_memory_ranges.store(ranges.by_address.size(), std::memory_order_release);
}

void ForgetFileMemory(uint64_t address) {
  FileRanges& ranges = TheFileRanges();
  base::MutexLock lock(ranges.mutex);
  ranges.by_address.erase(address);
  file_memory_ranges.store(ranges.by_address.size(), std::memory_order_release);
}

void CopyFromProgram(const std::byte* from, std::byte* to, size_t bytes) {
  const auto address = reinterpret_cast<uint64_t>(from);
  if (!AnyFileMemory() || !Touches(address, bytes)) {
    std::memcpy(to, from, bytes);
  } else if (!ReadFileMemory(from, to, bytes)) {
    std::memset(to, 0, bytes);
    ReportGone(address);
  }
}

void CopyToProgram(const std::byte* from, std::byte* to, size_t bytes) {
  const auto address = reinterpret_cast<uint64_t>(to);
  if (!AnyFileMemory() || !Touches(address, bytes)) {
    std::memcpy(to, from, bytes);
  } else if (!WriteFileMemory(from, to, bytes)) {
    ReportGone(address);
  }
}

void ReportGone(uint64_t address) {
  FileRanges& ranges = TheFileRanges();
  FileRange range;
  {
    base::MutexLock lock(ranges.mutex);
    auto found = Holding(ranges.by_address, address);
    if (found == ranges.by_address.end()) found = ranges.by_address.lower_bound(address);
    if (found == ranges.by_address.end()) return;
    range = found->second;
    found->second.said = true;
  }
  int none = 0;
  range.once->compare_exchange_strong(none, range.error);
  if (range.said) return;
  Say("registered memory at %#llx (%llu bytes) cannot be read or written any more: its file was "
      "shortened, or its pages are protected. It is not copied (docs/host-memory.md)",
      static_cast<unsigned long long>(range.address), static_cast<unsigned long long>(range.bytes));
}

}  // namespace longwire::shim
