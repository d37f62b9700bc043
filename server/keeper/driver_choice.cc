#include "server/keeper/driver_choice.h"

#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "server/keeper/vmm_device.h"

namespace longwire::keeper {
namespace {

// Where distributions and containers put NVIDIA's driver. Not the loader's search path: that may
// lead to our own client library, which has the same name.
constexpr const char* kDriverPlaces[] = {
    "/usr/lib/x86_64-linux-gnu/libcuda.so.1",  "/usr/lib64/libcuda.so.1",
    "/usr/lib/aarch64-linux-gnu/libcuda.so.1", "/usr/lib/libcuda.so.1",
    "/usr/local/nvidia/lib64/libcuda.so.1",    "/usr/lib/wsl/lib/libcuda.so.1"};

std::string NvidiaDriver() {
  for (const char* place : kDriverPlaces) {
    if (access(place, R_OK) == 0) return place;
  }
  return "";
}

// Beside this program, as installed.
std::string SoftwareDriver() {
  std::error_code error;
  auto here = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  return (here / "../lib/longwire/softgpu/libcuda.so.1").lexically_normal();
}

}  // namespace

std::unique_ptr<DeviceMemory> OpenChosenDevice(const std::string& choice, int device,
                                               KeeperState* state) {
  auto open = [&](const std::string& path) {
    state->driver = path;
    state->software = path == SoftwareDriver();
    state->sentence.clear();
    return OpenVmmDevice(path, device, &state->code, &state->sentence);
  };
  if (choice == "software") return open(SoftwareDriver());
  if (choice != "auto") return open(choice);
  std::string path = NvidiaDriver();
  auto opened = path.empty() ? nullptr : open(path);
  if (opened != nullptr) return opened;
  if (path.empty()) state->sentence = "no NVIDIA driver is installed";
  std::fprintf(stderr,
               "longwire-keeper: NO GPU HERE (%s): serving the SOFTWARE DEVICE, which is slow and "
               "meant for trying and testing\n",
               state->sentence.c_str());
  return open(SoftwareDriver());
}

}  // namespace longwire::keeper
