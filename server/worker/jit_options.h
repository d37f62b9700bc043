// Options of the driver's just-in-time compiler and linker, on the worker's side.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "server/worker/driver.h"

namespace longwire::worker {

// The client's options that are plain numbers, and log buffers of our own.
class JitOptions {
 public:
  enum class Logs { kOwn, kNone };
  JitOptions(const std::vector<uint32_t>& options, const std::vector<uint64_t>& values,
             Logs logs = Logs::kOwn);
  JitOptions(const JitOptions&) = delete;
  JitOptions& operator=(const JitOptions&) = delete;
  unsigned count() const { return static_cast<unsigned>(names_.size()); }
  CUjit_option* names() { return names_.data(); }
  void** values() { return values_.data(); }
  std::string info_log() const;
  std::string error_log() const;

 private:
  void Add(CUjit_option name, uint64_t value);
  static constexpr size_t kLogBytes = 16 << 10;
  std::string info_, error_;
  std::vector<CUjit_option> names_;
  std::vector<void*> values_;
};

}  // namespace longwire::worker
