// Options of the just-in-time compiler and of the linker: what travels, and what comes back.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "longwire/calls.h"

namespace longwire::shim {

// As a program gives them: values are numbers, or pointers, in the pointers themselves.
struct JitOptions {
  unsigned count = 0;
  CUjit_option* option = nullptr;
  void** value = nullptr;

  // More are no list of options: the count is garbage, and what lies there is not to be read.
  static constexpr unsigned kMost = CU_JIT_NUM_OPTIONS;  // none stands there twice

  // False when there should be options and are none.
  bool valid() const {
    return count == 0 || (count <= kMost && option != nullptr && value != nullptr);
  }
};

// All options in their order; of buffers only whether there are any. CUDA_ERROR_NOT_SUPPORTED for
// those that point to tables of names.
CUresult TravellingOptions(const JitOptions& options, std::vector<uint32_t>* option,
                           std::vector<uint64_t>* value);

// Where the program wants to read what the compiler or linker says: its buffers for the two logs,
// and the values that are written over. They are the program's own, of a link up to its end.
class JitOutputs {
 public:
  JitOutputs() = default;
  explicit JitOutputs(const JitOptions& options);

  // Of a reply, also of one that refuses.
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
  };
  static void Copy(const Log& log, std::string_view text);
  void Write(const calls::JitOutputs& outputs) const;

  Log info_, error_;
  std::vector<Value> values_;
};

}  // namespace longwire::shim
