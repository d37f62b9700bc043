#include "server/worker/jit_options.h"

#include <cstring>

namespace longwire::worker {
namespace {

bool IsPlainOption(uint32_t option) {
  switch (option) {
    case CU_JIT_MAX_REGISTERS:
    case CU_JIT_THREADS_PER_BLOCK:
    case CU_JIT_OPTIMIZATION_LEVEL:
    case CU_JIT_TARGET_FROM_CUCONTEXT:
    case CU_JIT_TARGET:
    case CU_JIT_FALLBACK_STRATEGY:
    case CU_JIT_GENERATE_DEBUG_INFO:
    case CU_JIT_LOG_VERBOSE:
    case CU_JIT_GENERATE_LINE_INFO:
    case CU_JIT_CACHE_MODE:
    case CU_JIT_POSITION_INDEPENDENT_CODE:
    case CU_JIT_MIN_CTA_PER_SM:
    case CU_JIT_MAX_THREADS_PER_BLOCK:
    case CU_JIT_OVERRIDE_DIRECTIVE_VALUES:
      return true;
    default:
      return false;
  }
}

}  // namespace

JitOptions::JitOptions(const std::vector<uint32_t>& options, const std::vector<uint64_t>& values,
                       Logs logs) {
  for (size_t i = 0; i < options.size() && i < values.size(); ++i) {
    if (IsPlainOption(options[i])) Add(static_cast<CUjit_option>(options[i]), values[i]);
  }
  if (logs == Logs::kNone) return;
  info_.assign(kLogBytes, '\0');
  error_.assign(kLogBytes, '\0');
  Add(CU_JIT_INFO_LOG_BUFFER, reinterpret_cast<uint64_t>(info_.data()));
  Add(CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, kLogBytes);
  Add(CU_JIT_ERROR_LOG_BUFFER, reinterpret_cast<uint64_t>(error_.data()));
  Add(CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, kLogBytes);
}

void JitOptions::Add(CUjit_option name, uint64_t value) {
  names_.push_back(name);
  values_.push_back(reinterpret_cast<void*>(value));
}

std::string JitOptions::info_log() const {
  return std::string(info_.data(), strnlen(info_.data(), info_.size()));
}

std::string JitOptions::error_log() const {
  return std::string(error_.data(), strnlen(error_.data(), error_.size()));
}

}  // namespace longwire::worker
