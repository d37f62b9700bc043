// longwire-warden: starts the processes that use the devices, and outlives the daemon.

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "server/warden/service_manager.h"
#include "server/warden/warden.h"
#include "wire/descriptor_table.h"

namespace {

int Usage() {
  std::fprintf(stderr,
               "usage: longwire-warden --socket PATH [--driver auto|software|PATH]\n"
               "                       [--devices N,...] [--warm-workers N] [--on-demand]\n"
               "                       [--warm-workers-of DEVICE=N,...] [--software-devices N]\n"
               "                       [--compile-cache FOLDER]\n");
  return 2;
}

// The parts of a list with commas.
std::vector<std::string> Parts(const std::string& list) {
  std::vector<std::string> parts;
  std::istringstream text(list);
  for (std::string part; std::getline(text, part, ',');) parts.push_back(part);
  return parts;
}

// One option and its value; false if there is no such option.
bool Apply(const std::string& name, const std::string& value, longwire::warden::Options* options) {
  if (name == "--socket") {
    options->socket = value;
  } else if (name == "--driver") {
    options->driver = value;
  } else if (name == "--warm-workers") {
    options->warm_workers = std::atoi(value.c_str());
  } else if (name == "--warm-workers-of") {
    for (const std::string& part : Parts(value)) {
      int device = 0, workers = 0;
      if (std::sscanf(part.c_str(), "%d=%d", &device, &workers) != 2) return false;
      options->warm_workers_of[device] = workers;
    }
  } else if (name == "--devices") {
    for (const std::string& part : Parts(value)) {
      options->devices.push_back(std::atoi(part.c_str()));
    }
  } else if (name == "--compile-cache") {
    options->compile_cache = value;
  } else if (name == "--software-devices") {
    setenv("LONGWIRE_SOFTWARE_DEVICES", value.c_str(), 1);  // read by the device itself
  } else {
    return false;
  }
  return true;
}

// A daemon that starts us has its signals blocked.
void UnblockSignals() {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  longwire::warden::Options options;
  options.driver = "auto";
  for (int i = 1; i < argc; ++i) {
    std::string name = argv[i];
    if (name == "--on-demand") {
      options.on_demand = true;
      continue;
    }
    if (i + 1 == argc || !Apply(name, argv[i + 1], &options)) return Usage();
    ++i;
  }
  if (options.socket.empty()) return Usage();
  std::filesystem::path here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  options.worker_program = here / "longwire-worker";
  options.keeper_program = here / "longwire-keeper";
  // A worker imports memory as descriptors; a keeper has two per worker, we have four.
  longwire::wire::PrepareDescriptorTable();
  UnblockSignals();
  auto& manager = longwire::service::Manager::Ours();
  longwire::wire::Descriptor given = manager.TakeSocket();

  std::string sentence;
  longwire::warden::Warden warden(options);
  bool ready = warden.OpenDevices(&sentence) == 0;
  bool socket_is_ours = !given.valid();
  if (!ready || !warden.Listen(&sentence, std::move(given))) {
    std::fprintf(stderr, "longwire-warden: %s\n", sentence.c_str());
    return 1;
  }
  manager.Notify("READY=1");
  warden.Run();
  if (socket_is_ours) unlink(options.socket.c_str());
  return 0;
}
