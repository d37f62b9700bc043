// Options of the driver's just-in-time compiler and linker, on the worker's side.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "longwire/calls.h"
#include "server/rules/rule.h"
#include "server/worker/support/driver.h"

namespace longwire::worker {

// The client's numeric options, and log buffers of our own if the client requests logs.
class JitOptions {
 public:
  enum class Outputs { kWanted, kNone };
  JitOptions(const std::vector<uint32_t>& options, const std::vector<uint64_t>& values,
             Outputs outputs = Outputs::kWanted);
  JitOptions(const JitOptions&) = delete;
  JitOptions& operator=(const JitOptions&) = delete;
  // The operator's values, instead of the program's.
  void Apply(const rules::JitChange& change);
  unsigned count() const { return static_cast<unsigned>(names_.size()); }
  CUjit_option* names() { return names_.data(); }
  void** values() { return values_.data(); }
  std::string info_log() const;
  std::string error_log() const;
  // The values that the driver has overwritten up to now.
  void Tell(calls::JitOutputs* outputs) const;

 private:
  void Set(CUjit_option name, uint32_t value);
  void Add(CUjit_option name, uint64_t value);
  void AddLog(std::string* log, CUjit_option buffer, CUjit_option size, uint64_t room);

  std::string info_, error_;
  std::vector<CUjit_option> names_;
  std::vector<void*> values_;
  struct Output {
    CUjit_option name;
    uint32_t place;  // index in the client's call
  };
  std::vector<Output> outputs_;
};

}  // namespace longwire::worker
