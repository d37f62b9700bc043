// Device memory with a counterpart in the program's own memory; the two ends exchange what changed.
// The shadow is what the program's memory holds, as far as this end knows: where the device's bytes
// differ from it, the device has changed them.
//
// The calls of a mirror come in one stream. Shadows are touched by what hangs on that stream's
// markers only, so by the completion thread, in the stream's order. A pull that comes behind other
// work, in that work's stream, is outside this order: it counts only if no other pull was under way
// when it was queued, and nothing was queued after it until it is done.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "server/worker/memory/memory.h"

namespace longwire::worker {

// Bytes, all zero at first; pages that stay so take no memory.
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

// How many were queued (by the log thread, before their copies: those may be made at once) and are
// done (by the completion thread).
struct Exchanges {
  std::atomic<uint64_t> queued{0};
  std::atomic<uint64_t> done{0};
};

struct Mirror {
  uint64_t id = 0;
  uint64_t address = 0;
  uint64_t bytes = 0;
  std::shared_ptr<Shadow> shadow;
  Exchanges pushes, pulls;
};

// Log thread only.
class Mirrors {
 public:
  explicit Mirrors(const std::vector<Device>& devices) : devices_(devices) {}

  // CUDA_ERROR_INVALID_VALUE for a known number or an impossible range, CUDA_ERROR_OUT_OF_MEMORY
  // for more than all devices have.
  CUresult Add(uint64_t id, uint64_t address, uint64_t bytes);
  CUresult Remove(uint64_t id);
  std::shared_ptr<Mirror> Find(uint64_t id) const;

 private:
  const std::vector<Device>& devices_;
  std::unordered_map<uint64_t, std::shared_ptr<Mirror>> mirrors_;
  uint64_t total_ = 0;  // bytes
};

}  // namespace longwire::worker
