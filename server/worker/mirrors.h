// Device memory that has its like in the program's own memory, where the two ends exchange what
// changed. The shadow is what the program's memory holds, as far as this end knows: what the device
// has otherwise, the device has changed.
//
// The calls of a mirror come in one stream. Shadows are touched by what hangs on that stream's
// markers only, so by the completion thread, in the stream's order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "server/worker/memory.h"

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

struct Mirror {
  uint64_t id = 0;
  uint64_t address = 0;
  uint64_t bytes = 0;
  std::shared_ptr<Shadow> shadow;
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
