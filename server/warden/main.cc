// longwire-warden: starts the processes that use the devices, and outlives the daemon.

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>

#include "server/warden/service_manager.h"
#include "server/warden/warden.h"

namespace {

int Usage() {
  std::fprintf(stderr,
               "usage: longwire-warden --socket PATH [--driver auto|software|PATH]\n"
               "                       [--devices N,...] [--warm-workers N] [--on-demand]\n");
  return 2;
}

// A worker imports memory as descriptors; a keeper has two per worker, we have four.
void RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
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
    if (i + 1 == argc) return Usage();
    std::string value = argv[++i];
    if (name == "--socket")
      options.socket = value;
    else if (name == "--driver")
      options.driver = value;
    else if (name == "--warm-workers")
      options.warm_workers = std::atoi(value.c_str());
    else if (name != "--devices")
      return Usage();
    std::istringstream numbers(name == "--devices" ? value : "");
    for (std::string number; std::getline(numbers, number, ',');) {
      options.devices.push_back(std::atoi(number.c_str()));
    }
  }
  if (options.socket.empty()) return Usage();
  std::filesystem::path here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  options.worker_program = here / "longwire-worker";
  options.keeper_program = here / "longwire-keeper";
  RaiseDescriptorLimit();
  UnblockSignals();
  auto& manager = longwire::service::Manager::Ours();
  longwire::wire::Descriptor given = manager.TakeSocket();

  std::string sentence;
  longwire::warden::Warden warden(options);
  bool ready = warden.OpenDevice(&sentence) == 0;
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
