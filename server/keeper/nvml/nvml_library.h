// NVIDIA's management library, loaded when it is first wanted. Its functions are looked up by name,
// so that building needs no header of the driver, and a library that lacks one says so.
#pragma once

#include <dlfcn.h>

#include <filesystem>
#include <string>

namespace longwire::keeper {

constexpr int kNvmlSuccess = 0;
constexpr int kNvmlTimeout = 10;

class NvmlLibrary {
 public:
  // The one in the driver's folder. Not by the loader's search path: that may lead to our own
  // client library of this name. Never unloaded: its threads outlive any use of it.
  explicit NvmlLibrary(const std::string& driver)
      : handle_(driver.empty() ? nullptr : dlopen(Beside(driver).c_str(), RTLD_NOW | RTLD_LOCAL)) {}

  // NVML's code; -1 if the library is not there or lacks the function.
  template <class... Arguments>
  int Call(const char* name, Arguments... arguments) const {
    void* found = handle_ == nullptr ? nullptr : dlsym(handle_, name);
    return found == nullptr ? -1 : reinterpret_cast<int (*)(Arguments...)>(found)(arguments...);
  }

 private:
  static std::string Beside(const std::string& driver) {
    return std::filesystem::path(driver).replace_filename("libnvidia-ml.so.1");
  }

  void* handle_;
};

}  // namespace longwire::keeper
