#include "client-shim/code/jit_options.h"

#include <algorithm>
#include <cstring>

namespace longwire::shim {
namespace {

bool IsBuffer(CUjit_option option) {
  return option == CU_JIT_INFO_LOG_BUFFER || option == CU_JIT_ERROR_LOG_BUFFER;
}

// The driver writes over their values: two sizes, milliseconds as a float, a number of threads.
bool IsOutput(CUjit_option option) {
  return option == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES ||
         option == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES || option == CU_JIT_WALL_TIME ||
         option == CU_JIT_THREADS_PER_BLOCK;
}

bool IsPointerOption(CUjit_option option) {
  return option == CU_JIT_GLOBAL_SYMBOL_NAMES || option == CU_JIT_GLOBAL_SYMBOL_ADDRESSES ||
         option == CU_JIT_REFERENCED_KERNEL_NAMES || option == CU_JIT_REFERENCED_VARIABLE_NAMES;
}

}  // namespace

CUresult TravellingOptions(const JitOptions& options, std::vector<uint32_t>* option,
                           std::vector<uint64_t>* value) {
  for (unsigned i = 0; i < options.count; ++i) {
    if (IsPointerOption(options.option[i])) return CUDA_ERROR_NOT_SUPPORTED;
    auto given = reinterpret_cast<uint64_t>(options.value[i]);
    option->push_back(options.option[i]);
    value->push_back(IsBuffer(options.option[i]) ? given != 0 : given);
  }
  return CUDA_SUCCESS;
}

JitOutputs::JitOutputs(const JitOptions& options) {
  for (unsigned i = 0; i < options.count; ++i) {
    void** value = &options.value[i];
    // Sizes are 32 bits wide, whatever stands above them.
    size_t bytes = reinterpret_cast<size_t>(*value) & 0xffffffff;
    if (options.option[i] == CU_JIT_INFO_LOG_BUFFER) info_.buffer = static_cast<char*>(*value);
    if (options.option[i] == CU_JIT_ERROR_LOG_BUFFER) error_.buffer = static_cast<char*>(*value);
    if (options.option[i] == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES) info_.room = bytes;
    if (options.option[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) error_.room = bytes;
    bool of_log = options.option[i] == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES ||
                  options.option[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES;
    if (IsOutput(options.option[i])) values_.push_back({i, value, of_log ? bytes : UINT64_MAX});
  }
}

void JitOutputs::Copy(const Log& log, std::string_view text) {
  if (log.buffer == nullptr || log.room == 0) return;
  size_t length = std::min(log.room - 1, text.size());
  if (length != 0) std::memcpy(log.buffer, text.data(), length);
  log.buffer[length] = 0;
}

void JitOutputs::Write(const calls::JitOutputs& outputs) const {
  size_t count = std::min(outputs.place.size(), outputs.value.size());
  for (size_t i = 0; i < count; ++i) {
    for (const Value& value : values_) {
      if (value.place != outputs.place[i]) continue;
      *value.at = reinterpret_cast<void*>(std::min(outputs.value[i], value.most));
    }
  }
}

}  // namespace longwire::shim
