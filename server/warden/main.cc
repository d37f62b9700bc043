// longwire-warden: starts the processes that use the devices, and outlives the daemon.

#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <string>

#include "server/warden/warden.h"

namespace {

using longwire::warden::Options;
using longwire::warden::Warden;

// Where distributions and containers put NVIDIA's driver. Not the loader's search path: that may
// lead to our own client library of the same name.
constexpr const char* kDriverPlaces[] = {
    "/usr/lib/x86_64-linux-gnu/libcuda.so.1", "/usr/lib64/libcuda.so.1",
    "/usr/lib/aarch64-linux-gnu/libcuda.so.1", "/usr/lib/libcuda.so.1",
    "/usr/local/nvidia/lib64/libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"};

int Usage() {
  std::fprintf(stderr,
               "usage: longwire-warden --socket PATH [--driver auto|software|PATH] [--devices N,...]\n"
               "                       [--warm-workers N] [--on-demand]\n");
  return 2;
}

std::string FindDriver() {
  for (const char* place : kDriverPlaces) {
    if (access(place, R_OK) == 0 && access("/dev/nvidiactl", F_OK) == 0) return place;
  }
  return "";
}

// Serves until it is not needed; 1 if it could not start. *opened tells if the device is there.
int Serve(const Options& options, bool* opened) {
  std::string sentence;
  Warden warden(options);
  *opened = warden.OpenDevice(&sentence) == 0;
  if (*opened && warden.Listen()) {
    warden.Run();
    unlink(options.socket.c_str());
    return 0;
  }
  if (*opened) sentence = "cannot listen at " + options.socket + ": " + strerror(errno);
  std::fprintf(stderr, "longwire-warden: %s\n", sentence.c_str());
  return 1;
}

// A worker imports chunks as descriptors, a keeper has two per worker.
void RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  options.driver = "auto";
  std::string list;
  for (int i = 1; i < argc; ++i) {
    std::string name = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : nullptr;
    if (name == "--on-demand") options.on_demand = true;
    else if (value == nullptr) return Usage();
    else if (name == "--socket") options.socket = argv[++i];
    else if (name == "--driver") options.driver = argv[++i];
    else if (name == "--devices") list = argv[++i];
    else if (name == "--warm-workers") options.warm_workers = std::atoi(argv[++i]);
    else return Usage();
  }
  if (options.socket.empty()) return Usage();
  std::istringstream numbers(list);
  for (std::string number; std::getline(numbers, number, ',');) {
    options.devices.push_back(std::atoi(number.c_str()));
  }
  std::filesystem::path here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  options.worker_program = here / "longwire-worker";
  options.keeper_program = here / "longwire-keeper";
  std::string software = (here / "../lib/longwire/softgpu/libcuda.so.1").lexically_normal();

  RaiseDescriptorLimit();

  bool opened = false;
  bool automatic = options.driver == "auto";
  if (automatic) options.driver = FindDriver();
  if (automatic && !options.driver.empty()) {
    int code = Serve(options, &opened);
    if (opened) return code;
  }
  if (automatic) {
    std::fprintf(stderr,
                 "longwire-warden: NO GPU HERE: serving the software device, which is slow and "
                 "meant for trying and testing\n");
  }
  if (automatic || options.driver == "software") options.driver = software;
  if (options.driver == software) {
    options.own_network = longwire::warden::CanIsolateNetwork();
    if (!options.own_network) {
      std::fprintf(stderr, "longwire-warden: workers share this machine's network: %s\n",
                   "not permitted to give them a namespace of their own");
    }
  }
  return Serve(options, &opened);
}
