#include "server/driver/driver_choice.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <filesystem>

#include "server/driver/client_library.h"
#include "server/driver/older_forms.h"

namespace longwire {
namespace {

constexpr const char* kRemedy =
    " is Longwire's client library, not a driver: name the path of the driver's library by "
    "--driver "
    "or the key driver";

// The file that was loaded; a name without a folder leads the loader through its search path.
std::string FileOf(void* library, const std::string& name) {
  link_map* map = nullptr;
  bool known = dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map->l_name[0] != '\0';
  return known ? map->l_name : name;
}

// Empty, with a sentence, if there is none.
std::string NvidiaDriver(const DriverPlaces& places, std::string* sentence) {
  *sentence = "no NVIDIA driver is installed";
  for (const std::string& place : places.nvidia) {
    if (access(place.c_str(), R_OK) != 0) continue;
    if (!IsClientLibrary(place)) return place;
    *sentence = place + kRemedy;
  }
  return {};
}

}  // namespace

DriverPlaces DriverPlaces::OfThisHost() {
  std::error_code error;
  auto here = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  return {.nvidia = {"/usr/lib/x86_64-linux-gnu/libcuda.so.1", "/usr/lib64/libcuda.so.1",
                     "/usr/lib/aarch64-linux-gnu/libcuda.so.1", "/usr/lib/libcuda.so.1",
                     "/usr/local/nvidia/lib64/libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"},
          .software = (here / "../lib/longwire/softgpu/libcuda.so.1").lexically_normal()};
}

CUresult LoadDriver(const std::string& path, LoadedDriver* driver, std::string* sentence) {
  *driver = {};
  driver->path = path;
  // Before it is loaded: a library that comes later and needs libcuda.so.1 would find it.
  if (IsClientLibrary(path)) {
    *sentence = path + kRemedy;
    return CUDA_ERROR_NO_DEVICE;
  }
  // Local: its symbols must not meet ours. Never unloaded: its threads outlive any use of it.
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = dlerror();
    *sentence = "cannot load the driver " + path + ": " + (reason != nullptr ? reason : "unknown");
    return CUDA_ERROR_NO_DEVICE;
  }
  std::string file = FileOf(library, path);
  if (IsClientLibrary(file)) {
    *sentence = file + kRemedy;
    return CUDA_ERROR_NO_DEVICE;
  }
  if (dlsym(library, "cuInit") == nullptr) {
    *sentence = path + " is no CUDA driver";
    return CUDA_ERROR_NO_DEVICE;
  }
  LoadDriverTable(library, &driver->table, &driver->missing);
  UseOlderForms(&driver->table, &driver->missing);
  return CUDA_SUCCESS;
}

CUresult ChooseDriver(const std::string& choice, const DriverPlaces& places, const TryDriver& works,
                      LoadedDriver* driver, std::string* sentence) {
  auto take = [&](const std::string& path) {
    CUresult result = LoadDriver(path, driver, sentence);
    driver->software = path == places.software;
    if (result == CUDA_SUCCESS) result = works(*driver, sentence);
    if (result == CUDA_SUCCESS) sentence->clear();
    return result;
  };
  if (choice == "software") return take(places.software);
  if (choice != "auto") return take(choice);
  std::string nvidia = NvidiaDriver(places, sentence);
  if (!nvidia.empty() && take(nvidia) == CUDA_SUCCESS) return CUDA_SUCCESS;
  const std::string reason = *sentence;
  CUresult result = take(places.software);
  driver->not_nvidia = reason;
  return result;
}

}  // namespace longwire
