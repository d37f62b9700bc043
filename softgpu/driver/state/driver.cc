#include "softgpu/driver/state/driver.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>

namespace softgpu {
namespace {

// Codes that poison every context of the process natively.
bool IsFault(int code) {
  switch (code) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
      return true;
    default:
      return false;
  }
}

// The names that were written on stderr.
struct RefusedNames {
  base::Mutex mutex{base::ranks::kSoftgpuRefusedNames};
  std::set<std::string> names LONGWIRE_GUARDED_BY(mutex);
};

}  // namespace

constinit base::Mutex Driver::mutex{base::ranks::kSoftgpuDriver};

Driver& Driver::Get() {
  static auto* driver = new Driver;
  return *driver;
}

Device* Driver::FindDevice(CUdevice ordinal) {
  if (ordinal < 0 || static_cast<size_t>(ordinal) >= devices.size()) return nullptr;
  return devices[ordinal].get();
}

void Driver::Fail(Context& context, int code, const std::string& message) {
  Remark("error %d: %s", code, message.c_str());
  int none = 0;
  if (IsFault(code)) {
    fault.compare_exchange_strong(none, code);
  } else {
    context.late_error.compare_exchange_strong(none, code);
  }
}

bool& InHostFunction() {
  thread_local bool inside = false;
  return inside;
}

std::vector<Context*>& ContextStack() {
  thread_local std::vector<Context*> stack;
  return stack;
}

Context* CurrentContext() { return ContextStack().empty() ? nullptr : ContextStack().back(); }

CUresult Enter() {
  Driver& driver = Driver::Get();
  if (!driver.initialized || driver.forked) return CUDA_ERROR_NOT_INITIALIZED;
  if (InHostFunction()) return CUDA_ERROR_NOT_PERMITTED;
  return static_cast<CUresult>(driver.fault.load());
}

CUresult Enter(Context** context) {
  LONGWIRE_TRY(Enter());
  Context* current = CurrentContext();
  if (current == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *context = current->home;
  return current->alive ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

CUresult ResolveContext(CUcontext handle, Context** context) {
  if (handle == nullptr) {
    LONGWIRE_TRY(Enter(context));
    *context = CurrentContext();
    return CUDA_SUCCESS;
  }
  LONGWIRE_TRY(Enter());
  auto found = Driver::Get().contexts.Find(handle);
  if (!found) return CUDA_ERROR_INVALID_CONTEXT;
  *context = found.get();
  return found->alive ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

int KeepErrorOutput() {
  static const int kept = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  return kept >= 0 ? kept : STDERR_FILENO;
}

void Remark(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::string line = "softgpu: " + std::string(format) + "\n";
  vdprintf(KeepErrorOutput(), line.c_str(), arguments);
  va_end(arguments);
}

CUresult Refuse(const char* name) {
  static auto* refused = new RefusedNames;
  base::MutexLock lock(refused->mutex);
  if (refused->names.insert(name).second) {
    Remark("%s is not supported by the software device", name);
  }
  return CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace softgpu
