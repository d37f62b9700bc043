// Options of the just-in-time compiler and the linker: those that are sent, and the results.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "longwire/calls.h"

namespace longwire::shim {

// Options as the program passes them: a value is a pointer, or a number stored in the pointer.
struct JitOptions {
  unsigned count = 0;
  CUjit_option* option = nullptr;
  void** value = nullptr;

  // A larger count is garbage, and the array must not be read: no option occurs twice.
  static constexpr unsigned kMaxOptions = CU_JIT_NUM_OPTIONS;

  // False if the count is too large, or if there are options but an array is missing.
  bool valid() const {
    return count == 0 || (count <= kMaxOptions && option != nullptr && value != nullptr);
  }
};

// Encodes all options in their order; for buffers, only whether they exist.
// CUDA_ERROR_NOT_SUPPORTED for options that point to tables of names.
CUresult TravellingOptions(const JitOptions& options, std::vector<uint32_t>* option,
                           std::vector<uint64_t>* value);

// The program's memory for results of the compiler or linker: the buffers for the two logs, and
// values that are overwritten. A link uses them until its end.
class JitOutputs {
 public:
  JitOutputs() = default;
  explicit JitOutputs(const JitOptions& options);

  // Stores the results of a reply, also of an error reply.
  template <class Reply>
  void Deliver(const Reply& reply) const {
    Copy(info_, reply.info_log);
    Copy(error_, reply.error_log);
    Write(reply.outputs);
  }

 private:
  struct Log {
    char* buffer = nullptr;
    size_t room = 0;
  };
  struct Value {
    uint32_t place = 0;
    void** at = nullptr;
    uint64_t most = 0;  // of the bytes of a log: its buffer has no more
  };
  static void Copy(const Log& log, std::string_view text);
  void Write(const calls::JitOutputs& outputs) const;

  Log info_, error_;
  std::vector<Value> values_;
};

}  // namespace longwire::shim
