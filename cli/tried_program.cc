#include "cli/tried_program.h"

#include <dlfcn.h>

#include <array>
#include <cstdint>
#include <cstdio>

namespace longwire::cli {
namespace {

constexpr size_t kBytes = 4096;

const char* NameOf(void* driver, int code) {
  using GetName = int (*)(int, const char**);
  auto get = reinterpret_cast<GetName>(dlsym(driver, "cuGetErrorName"));
  const char* name = nullptr;
  return get != nullptr && get(code, &name) == 0 && name != nullptr ? name : "an unknown code";
}

// Calls a function of the driver and prints an error.
template <typename... Parameters>
bool Call(void* driver, const char* name, Parameters... parameters) {
  // Printed before the call, so that the parent knows where it hangs.
  std::printf("calls %s\n", name);
  std::fflush(stdout);
  auto function = reinterpret_cast<int (*)(Parameters...)>(dlsym(driver, name));
  if (function == nullptr) {
    std::printf("failed it has no %s\n", name);
    return false;
  }
  int code = function(parameters...);
  if (code != 0) std::printf("failed %s answers %s (%d)\n", name, NameOf(driver, code), code);
  return code == 0;
}

bool CopyThereAndBack(void* driver) {
  int device = 0;
  void* context = nullptr;
  uint64_t memory = 0;
  std::array<unsigned char, kBytes> sent{}, got{};
  for (size_t i = 0; i < kBytes; ++i) sent[i] = static_cast<unsigned char>(i * 7 + 1);
  if (!Call(driver, "cuDeviceGet", &device, 0) ||
      !Call(driver, "cuDevicePrimaryCtxRetain", &context, device) ||
      !Call(driver, "cuCtxSetCurrent", context) ||
      !Call(driver, "cuMemAlloc_v2", &memory, kBytes) ||
      !Call(driver, "cuMemcpyHtoD_v2", memory, static_cast<const void*>(sent.data()), kBytes) ||
      !Call(driver, "cuMemcpyDtoH_v2", static_cast<void*>(got.data()), memory, kBytes) ||
      !Call(driver, "cuMemFree_v2", memory)) {
    return false;
  }
  if (sent != got) std::puts("failed other bytes came back from the device than went there");
  return sent == got;
}

}  // namespace

int TriedProgram(const Arguments& arguments) {
  if (arguments.size() != 1) return kUsageStatus;
  void* driver = dlopen(arguments[0].c_str(), RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr) {
    std::printf("unloadable %s\n", dlerror());
    return 1;
  }
  int devices = 0;
  if (!Call(driver, "cuInit", 0u) || !Call(driver, "cuDeviceGetCount", &devices)) return 1;
  if (devices == 0) {
    std::puts("failed cuDeviceGetCount finds no device");
    return 1;
  }
  if (!CopyThereAndBack(driver)) return 1;
  std::printf("devices %d\n", devices);
  return 0;
}

}  // namespace longwire::cli
