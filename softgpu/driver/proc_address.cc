// cuGetProcAddress: which function a (name, version, stream form) stands for. The table, in
// proc_table.inc, lists every exported function by name: what is not in it is not supported.
#include <cstring>

#include "softgpu/driver/calls/old_forms.h"
#include "softgpu/driver/driver_version.h"
#include "softgpu/driver/state/driver.h"
#include "softgpu/driver/stream/stream.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // the table lists old calls too

namespace softgpu {
namespace {

enum Form { kAny, kPerThread };

struct Entry {
  const char* name;  // without suffix
  int version;       // the driver version that introduced this form
  Form form;
  void* function;
};

// The per-thread form of a call: its stream 0 is the calling thread's own.
template <auto Function>
struct PerThread;
template <class... Parameters, CUresult (*Function)(Parameters...)>
struct PerThread<Function> {
  static CUresult Call(Parameters... parameters) {
    PerThreadForm form;
    return Function(parameters...);
  }
};

#define F(symbol) kAny, reinterpret_cast<void*>(&(symbol))
#define P(symbol) kPerThread, reinterpret_cast<void*>(&PerThread<&(symbol)>::Call)

const Entry kTable[] = {
#include "softgpu/driver/proc_table.inc"
};

#undef F
#undef P

// The newest form that `version` already had; per-thread forms only where they are asked for.
void* Find(const char* name, int version, bool per_thread, bool* too_new) {
  const Entry* best = nullptr;
  for (const Entry& entry : kTable) {
    if (strcmp(entry.name, name) != 0) continue;
    if (entry.version > version) {
      if (entry.form == kAny) *too_new = true;
      continue;
    }
    if (entry.form == kPerThread && !per_thread) continue;
    if (best == nullptr || entry.form > best->form ||
        (entry.form == best->form && entry.version > best->version)) {
      best = &entry;
    }
  }
  return best ? best->function : nullptr;
}

}  // namespace
}  // namespace softgpu

CUresult cuGetProcAddress_v2(const char* symbol, void** function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* status) {
  if (symbol == nullptr || function == nullptr || version > softgpu::DriverVersion() ||
      flags > CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  bool too_new = false;
  bool per_thread = flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  *function = softgpu::Find(symbol, version, per_thread, &too_new);
  if (status != nullptr) {
    *status = *function ? CU_GET_PROC_ADDRESS_SUCCESS
              : too_new ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                        : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  }
  return *symbol == '\0' ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}

CUresult cuGetProcAddress(const char* symbol, void** function, int version, cuuint64_t flags) {
  CUdriverProcAddressQueryResult status;
  CUresult result = cuGetProcAddress_v2(symbol, function, version, flags, &status);
  if (result == CUDA_SUCCESS && *function == nullptr) return CUDA_ERROR_NOT_FOUND;
  return result;
}
