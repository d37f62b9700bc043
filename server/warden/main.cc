// longwire-warden: starts the processes that use the devices, and outlives the daemon.

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>

#include "base/reason.h"
#include "longwire/guard_switches.h"
#include "server/warden/command_line.h"
#include "server/warden/service_manager.h"
#include "server/warden/warden.h"
#include "wire/descriptor_table.h"
#include "wire/descriptors.h"
#include "wire/switches.h"

namespace {

// A daemon that starts us has its signals blocked.
void UnblockSignals() {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  longwire::wire::OpenStandardDescriptors();
  longwire::base::SayWhyTerminated("longwire-warden");
  longwire::warden::Refusal refusal;
  auto given = longwire::warden::ParseCommandLine(argc, argv, &refusal);
  if (!given) {
    std::fputs(refusal.text.c_str(), refusal.status == 0 ? stdout : stderr);
    return refusal.status;
  }
  longwire::warden::Options options = std::move(*given);
  std::filesystem::path here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  options.worker_program = here / "longwire-worker";
  options.keeper_program = here / "longwire-keeper";
#if LONGWIRE_GUARD_SWITCHES
  // As behind walls (server/walls/main.cc).
  if (const char* other = std::getenv("LONGWIRE_TEST_WORKER")) options.worker_program = other;
#endif
  options.walls.starter_program = here / "longwire-walls";
  // A worker imports memory as descriptors; a keeper has two per worker, we have five and one per
  // device.
  longwire::wire::PrepareDescriptorTable();
  for (const std::string& sentence : longwire::wire::UnknownSwitches()) {
    std::fprintf(stderr, "longwire-warden: %s\n", sentence.c_str());
  }
  UnblockSignals();
  auto& manager = longwire::service::Manager::Ours();
  longwire::wire::Descriptor socket = manager.TakeSocket();

  std::string sentence;
  longwire::warden::Warden warden(options);
  bool ready = warden.OpenDevices(&sentence) == 0;
  bool socket_is_ours = !socket.valid();
  if (!ready || !warden.Listen(&sentence, std::move(socket))) {
    std::fprintf(stderr, "longwire-warden: %s\n", sentence.c_str());
    return 1;
  }
  manager.Notify("READY=1");
  warden.Run();
  if (socket_is_ours) unlink(options.socket.c_str());
  return 0;
}
