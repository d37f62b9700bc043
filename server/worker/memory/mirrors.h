// Device memory that mirrors memory of the program; the two ends exchange changes. The shadow has
// the program's bytes, as far as this end knows: where the device's bytes differ, the device has
// changed them.
//
// The calls of a mirror come in one stream. Only actions of that stream's markers use shadows, thus
// the completion thread, in the stream's order. A pull behind other work, in that work's stream, is
// outside this order. Its result is used only if no other pull was in progress when it was queued,
// and nothing was queued after it until it was done.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "server/worker/memory/changed_pages.h"
#include "server/worker/memory/memory.h"
#include "server/worker/support/host_memory.h"

namespace longwire::worker {

struct DeviceShadow;  // states/device_shadows.h

// Bytes that are zero at first. Pages that are never written take no memory.
class Shadow {
 public:
  static std::shared_ptr<Shadow> Make(uint64_t bytes);  // null: no memory
  ~Shadow();
  Shadow(const Shadow&) = delete;
  Shadow& operator=(const Shadow&) = delete;
  std::byte* data() const { return data_; }

 private:
  Shadow(std::byte* data, uint64_t bytes) : data_(data), bytes_(bytes) {}
  std::byte* data_;
  uint64_t bytes_;
};

// Numbers of exchanges that were queued (counted by the log thread, before their copies, which may
// be made at once) and are done (counted by the completion thread).
struct Exchanges {
  std::atomic<uint64_t> queued{0};
  std::atomic<uint64_t> done{0};
};

struct Mirror {
  uint64_t id = 0;
  uint64_t address = 0;
  uint64_t bytes = 0;
  std::shared_ptr<Shadow> shadow;
  HostMemory::Share share;
  Exchanges pushes, pulls;
  // Words that looks have sent: each changes the shadow.
  std::atomic<uint64_t> looked{0};

  // The shadow's copy on the device, where states are compared there (states/compared_look.h), and
  // what the copy does not have yet. The latter is the completion thread's.
  std::shared_ptr<DeviceShadow> device_shadow;
  std::unique_ptr<ChangedPages> changed_pages;
  // To be called where the shadow has changed.
  void NoteChange(uint64_t offset, uint64_t count) const {
    if (changed_pages != nullptr) changed_pages->Mark(offset, count);
  }
};

// Log thread only.
class Mirrors {
 public:
  Mirrors(const std::vector<Device>& devices, HostMemory& host_memory)
      : devices_(devices), host_memory_(host_memory) {}

  // CUDA_ERROR_INVALID_VALUE for a known number or an impossible range, CUDA_ERROR_OUT_OF_MEMORY
  // for more than all devices have, or the limits of the host's memory allow.
  CUresult Add(uint64_t id, uint64_t address, uint64_t bytes);
  CUresult Remove(uint64_t id);
  std::shared_ptr<Mirror> Find(uint64_t id) const;
  bool Any() const { return !mirrors_.empty(); }
  bool Has(uint64_t address) const;  // whether it lies in one of them
  // Also another thread, while the log thread is held and nothing is exchanged.
  std::vector<std::shared_ptr<Mirror>> All() const;

 private:
  const std::vector<Device>& devices_;
  HostMemory& host_memory_;
  std::unordered_map<uint64_t, std::shared_ptr<Mirror>> mirrors_;
  uint64_t total_ = 0;  // bytes
};

}  // namespace longwire::worker
