#include "server/worker/process/driver_loader.h"

#include <dlfcn.h>
#include <unistd.h>

#include <climits>

#include "server/worker/support/log_line.h"

namespace longwire::worker {
namespace {

bool Open(const std::string& path, LoadedDriver* driver, std::string* sentence) {
  // Local: its symbols must not meet ours.
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = dlerror();
    *sentence = "cannot load the driver " + path + ": " + (reason != nullptr ? reason : "unknown");
    return false;
  }
  driver->path = path;
  driver->missing.clear();
  LoadDriverTable(library, &driver->table, &driver->missing);
  if (dlsym(library, "cuInit") == nullptr) {
    *sentence = path + " is no CUDA driver";
    return false;
  }
  return true;
}

}  // namespace

std::string SoftwareDriverPath() {
  char path[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
  std::string binary(path, length > 0 ? static_cast<size_t>(length) : 0);
  return binary.substr(0, binary.rfind('/')) + "/../lib/longwire/softgpu/libcuda.so.1";
}

bool LoadDriver(const std::string& name, LoadedDriver* driver, std::string* sentence) {
  if (name == "software") return Open(SoftwareDriverPath(), driver, sentence);
  if (name != "auto") return Open(name, driver, sentence);
  if (Open("libcuda.so.1", driver, sentence)) {
    CUresult result = driver->table.cuInit(0);
    if (result == CUDA_SUCCESS) return true;
    *sentence = "its cuInit answers " + std::to_string(result);
  }
  LogLine("NO GPU DRIVER WORKS HERE (%s): using the software device, which is slow",
          sentence->c_str());
  return Open(SoftwareDriverPath(), driver, sentence);
}

}  // namespace longwire::worker
