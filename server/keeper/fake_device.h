// A device for tests: counts calls, can fail, and stores one byte for each chunk's content. In host
// memory that byte is the first one of the chunk's place.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <memory>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "server/keeper/device_memory.h"

namespace longwire::keeper {

class FakeDevice : public DeviceMemory {
 public:
  FakeDevice(uint64_t total, uint64_t granularity) {
    identity_ = {"Fake device", 1, total, granularity, {}};
  }

  const DeviceIdentity& identity() const override { return identity_; }

  int Create(uint64_t bytes, uint64_t* handle) override {
    base::MutexLock lock(mutex_);
    ++creates;
    if (creates == fail_create) return kOutOfMemory;
    if (bytes % identity_.granularity != 0 || bytes > identity_.total - used_ - others) {
      return kOutOfMemory;
    }
    int file = memfd_create("fake-chunk", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, 4096) != 0) return kOutOfMemory;
    *handle = next_++;
    used_ += bytes;
    chunks_[*handle] = {bytes, wire::Descriptor(file)};
    char dirty = 'D';  // new memory is not zeroed
    (void)!pwrite(file, &dirty, 1, 0);
    return kSuccess;
  }

  int Export(uint64_t handle, wire::Descriptor* descriptor) override {
    base::MutexLock lock(mutex_);
    if (++exports == fail_export) return kOutOfMemory;
    descriptor->Reset(dup(chunks_.at(handle).file.get()));
    return kSuccess;
  }

  void Release(uint64_t handle) override {
    base::MutexLock lock(mutex_);
    used_ -= chunks_.at(handle).bytes;
    chunks_.erase(handle);
  }

  int Zero(uint64_t handle, uint64_t bytes) override {
    while (bytes >= hold_zero_from) usleep(500);
    base::MutexLock lock(mutex_);
    if (++zeros == fail_zero || chunks_.at(handle).bytes != bytes) return 999;
    char clean = 0;
    (void)!pwrite(chunks_.at(handle).file.get(), &clean, 1, 0);
    return kSuccess;
  }

  std::byte* Pin(uint64_t bytes) override {
    if (++pins == fail_pin) return nullptr;
    void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED) return nullptr;
    base::MutexLock lock(mutex_);
    pinned_.emplace_back(static_cast<std::byte*>(data), bytes);
    return static_cast<std::byte*>(data);
  }

  void ClearHost(const HostPart& part) override {
    base::MutexLock lock(mutex_);
    DeviceMemory::ClearHost(part);
  }

  int CopyOut(uint64_t handle, uint64_t bytes, std::span<const HostPart> to) override {
    while (hold_copies) usleep(500);
    base::MutexLock lock(mutex_);
    if (++outs == fail_out || chunks_.at(handle).bytes != bytes) return 999;
    return pread(chunks_.at(handle).file.get(), to[0].data, 1, 0) == 1 ? kSuccess : 999;
  }

  int CopyIn(uint64_t handle, uint64_t bytes, std::span<const HostPart> from) override {
    while (hold_copies) usleep(500);
    base::MutexLock lock(mutex_);
    if (++ins == fail_in || chunks_.at(handle).bytes != bytes) return 999;
    return pwrite(chunks_.at(handle).file.get(), from[0].data, 1, 0) == 1 ? kSuccess : 999;
  }

  int Fill(uint64_t handle, uint64_t bytes, const wire::Descriptor& from) override {
    while (hold_copies) usleep(500);
    base::MutexLock lock(mutex_);
    char content = 0;
    if (++fills == fail_fill || chunks_.at(handle).bytes != bytes) return 999;
    const bool copied = pread(from.get(), &content, 1, 0) == 1 &&
                        pwrite(chunks_.at(handle).file.get(), &content, 1, 0) == 1;
    return copied ? kSuccess : kInvalidValue;
  }

  // The nonzero bytes in host memory.
  std::string HostBytes() {
    base::MutexLock lock(mutex_);
    std::string found;
    for (auto& [data, bytes] : pinned_) {
      for (uint64_t at = 0; at < bytes; at += identity_.granularity) {
        if (data[at] != std::byte{0}) found += static_cast<char>(data[at]);
      }
    }
    return found;
  }

  ~FakeDevice() override {
    for (auto& [data, bytes] : pinned_) munmap(data, bytes);
  }

  uint64_t Used() override {
    base::MutexLock lock(mutex_);
    return used_ + others;
  }

  uint64_t used() {
    base::MutexLock lock(mutex_);
    return used_;
  }
  size_t count() {
    base::MutexLock lock(mutex_);
    return chunks_.size();
  }

  // The number of calls of each, and which call (from 1) fails.
  std::atomic<int> creates = 0, exports = 0, zeros = 0, pins = 0, outs = 0, ins = 0, fills = 0;
  std::atomic<int> fail_create = 0, fail_export = 0, fail_zero = 0;
  std::atomic<int> fail_pin = 0, fail_out = 0, fail_in = 0, fail_fill = 0;
  std::atomic<uint64_t> others = 0;                   // bytes that others use
  std::atomic<bool> hold_copies = false;              // copies do not return
  std::atomic<uint64_t> hold_zero_from = UINT64_MAX;  // Zero of at least this size does not return

 private:
  struct Chunk {
    uint64_t bytes = 0;
    wire::Descriptor file;
  };
  DeviceIdentity identity_;
  base::Mutex mutex_;
  std::map<uint64_t, Chunk> chunks_ LONGWIRE_GUARDED_BY(mutex_);
  std::vector<std::pair<std::byte*, uint64_t>> pinned_ LONGWIRE_GUARDED_BY(mutex_);
  uint64_t used_ LONGWIRE_GUARDED_BY(mutex_) = 0;
  uint64_t next_ LONGWIRE_GUARDED_BY(mutex_) = 1;
};

}  // namespace longwire::keeper
