#include "server/worker/code/jit_options.h"

#include <algorithm>
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

// What the driver writes over: how much of a log there is, how long it took, how many threads.
bool IsOutput(uint32_t option) {
  return option == CU_JIT_WALL_TIME || option == CU_JIT_THREADS_PER_BLOCK ||
         option == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES ||
         option == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES;
}

// Of a log; logs and what else is in a reply fit into one record.
constexpr uint64_t kMaxLogBytes = 64 << 10;

}  // namespace

JitOptions::JitOptions(const std::vector<uint32_t>& options, const std::vector<uint64_t>& values,
                       Outputs outputs) {
  bool wanted = outputs == Outputs::kWanted;
  bool has_info = false, has_error = false;
  uint64_t info_room = 0, error_room = 0;
  for (size_t i = 0; i < options.size() && i < values.size(); ++i) {
    auto name = static_cast<CUjit_option>(options[i]);
    if (IsPlainOption(name) || (wanted && name == CU_JIT_WALL_TIME)) Add(name, values[i]);
    if (!wanted) continue;
    // Sizes are 32 bits wide, whatever stands above them.
    if (name == CU_JIT_INFO_LOG_BUFFER) has_info = values[i] != 0;
    if (name == CU_JIT_ERROR_LOG_BUFFER) has_error = values[i] != 0;
    if (name == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES) info_room = values[i] & 0xffffffff;
    if (name == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) error_room = values[i] & 0xffffffff;
    if (IsOutput(name)) outputs_.push_back({name, static_cast<uint32_t>(i)});
  }
  if (has_info) {
    AddLog(&info_, CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, info_room);
  }
  if (has_error) {
    AddLog(&error_, CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, error_room);
  }
}

void JitOptions::Apply(const rules::JitChange& change) {
  Set(CU_JIT_OPTIMIZATION_LEVEL, change.optimization);
  Set(CU_JIT_CACHE_MODE, change.cache);
  Set(CU_JIT_MAX_REGISTERS, change.registers);
  if (change.target == rules::kUnset) return;
  // The driver takes one of the two.
  for (CUjit_option& name : names_) {
    if (name == CU_JIT_TARGET_FROM_CUCONTEXT) name = CU_JIT_TARGET;
  }
  Set(CU_JIT_TARGET, change.target);
}

void JitOptions::Set(CUjit_option name, uint32_t value) {
  if (value == rules::kUnset) return;
  auto found = std::find(names_.begin(), names_.end(), name);
  if (found == names_.end()) return Add(name, value);
  values_[static_cast<size_t>(found - names_.begin())] =
      reinterpret_cast<void*>(static_cast<uint64_t>(value));
}

void JitOptions::Add(CUjit_option name, uint64_t value) {
  names_.push_back(name);
  values_.push_back(reinterpret_cast<void*>(value));
}

void JitOptions::AddLog(std::string* log, CUjit_option buffer, CUjit_option size, uint64_t room) {
  if (room == 0) return;
  log->assign(std::min(room, kMaxLogBytes), '\0');
  Add(buffer, reinterpret_cast<uint64_t>(log->data()));
  Add(size, log->size());
}

void JitOptions::Tell(calls::JitOutputs* outputs) const {
  for (const Output& output : outputs_) {
    auto found = std::find(names_.begin(), names_.end(), output.name);
    outputs->place.push_back(output.place);
    uint64_t value = 0;  // a log of no bytes
    if (found != names_.end()) {
      value = reinterpret_cast<uint64_t>(values_[static_cast<size_t>(found - names_.begin())]);
    }
    outputs->value.push_back(value);
  }
}

std::string JitOptions::info_log() const {
  return std::string(info_.data(), strnlen(info_.data(), info_.size()));
}

std::string JitOptions::error_log() const {
  return std::string(error_.data(), strnlen(error_.data(), error_.size()));
}

}  // namespace longwire::worker
