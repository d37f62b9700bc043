#include "softgpu/driver/module/jit_log.h"

#include <algorithm>
#include <cstring>

namespace softgpu {

JitLog::JitLog(unsigned count, const CUjit_option* options, void** values) {
  for (unsigned i = 0; i < count; ++i) {
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER) error_.text = static_cast<char*>(values[i]);
    if (options[i] == CU_JIT_INFO_LOG_BUFFER) info_.text = static_cast<char*>(values[i]);
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) error_.size = &values[i];
    if (options[i] == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES) info_.size = &values[i];
    if (options[i] == CU_JIT_WALL_TIME) time_ = &values[i];
  }
  for (Buffer* buffer : {&error_, &info_}) {
    if (buffer->size != nullptr) {
      buffer->room = reinterpret_cast<uintptr_t>(*buffer->size) & 0xffffffff;
    }
  }
}

void JitLog::Buffer::Add(const std::string& message) {
  if (text != nullptr && room != 0) {
    size_t start = used == 0 ? 0 : used - 1;  // over the zero
    size_t length = std::min(room - 1 - start, message.size());
    memcpy(text + start, message.data(), length);
    text[start + length] = '\0';
    used = start + length + 1;
  }
  if (size != nullptr) *size = reinterpret_cast<void*>(std::max<size_t>(used, 1) - 1);
}

void JitLog::Write(const std::string& message, float milliseconds) {
  error_.Add(message);
  info_.Add("");
  milliseconds_ += milliseconds;
  if (time_ != nullptr) memcpy(time_, &milliseconds_, sizeof milliseconds_);
}

}  // namespace softgpu
