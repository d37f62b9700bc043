#include "softgpu/driver/jit_log.h"

#include <algorithm>
#include <cstring>

namespace softgpu {

JitLog::JitLog(unsigned count, const CUjit_option* options, void** values) {
  for (unsigned i = 0; i < count; ++i) {
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER) buffer_ = static_cast<char*>(values[i]);
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) error_size_ = &values[i];
    if (options[i] == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES) info_size_ = &values[i];
  }
  if (error_size_ != nullptr) room_ = reinterpret_cast<uintptr_t>(*error_size_) & 0xffffffff;
}

void JitLog::Write(const std::string& message) const {
  size_t written = 0;
  if (buffer_ != nullptr && room_ != 0) {
    written = std::min(room_ - 1, message.size());
    memcpy(buffer_, message.data(), written);
    buffer_[written++] = '\0';
  }
  if (error_size_ != nullptr) *error_size_ = reinterpret_cast<void*>(written);
  if (info_size_ != nullptr) *info_size_ = nullptr;
}

}  // namespace softgpu
