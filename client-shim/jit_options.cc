#include "client-shim/jit_options.h"

#include <algorithm>
#include <cstring>

namespace longwire::shim {
namespace {

// Only the client's side fills these.
bool IsLogOption(CUjit_option option) {
  return option == CU_JIT_INFO_LOG_BUFFER || option == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES ||
         option == CU_JIT_ERROR_LOG_BUFFER || option == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES;
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
    if (IsLogOption(options.option[i])) continue;
    option->push_back(options.option[i]);
    value->push_back(reinterpret_cast<uint64_t>(options.value[i]));
  }
  return CUDA_SUCCESS;
}

JitLog::JitLog(const JitOptions& options, Kind kind) {
  bool info = kind == Kind::kInfo;
  auto buffer_option = info ? CU_JIT_INFO_LOG_BUFFER : CU_JIT_ERROR_LOG_BUFFER;
  auto size_option = info ? CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES : CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES;
  for (unsigned i = 0; i < options.count; ++i) {
    if (options.option[i] == buffer_option) buffer_ = static_cast<char*>(options.value[i]);
    if (options.option[i] == size_option) size_ = &options.value[i];
  }
  if (size_ != nullptr) room_ = reinterpret_cast<size_t>(*size_) & 0xffffffff;
}

void JitLog::Deliver(std::string_view log) const {
  if (size_ == nullptr) return;
  size_t length = room_ == 0 ? 0 : std::min(room_ - 1, log.size());
  if (buffer_ != nullptr && room_ != 0) {
    std::memcpy(buffer_, log.data(), length);
    buffer_[length] = 0;
  }
  *size_ = reinterpret_cast<void*>(length);
}

}  // namespace longwire::shim
