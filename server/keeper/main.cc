// longwire-keeper: owns the physical memory of one device and lends it to workers.

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>

#include "server/keeper/driver_choice.h"
#include "server/keeper/keeper.h"
#include "wire/descriptor_table.h"
#include "wire/guards.h"

namespace {

using longwire::keeper::KeeperState;

int Usage() {
  std::fprintf(stderr,
               "usage: longwire-keeper --driver auto|software|PATH --device N --control FD\n"
               "                       [--reserve MIB] [--ledger FD]\n"
               "Started by longwire-warden.\n");
  return 2;
}

// What contexts, modules and stacks of workers take of the device, before it is measured: a context
// takes about 0.5 GiB of 139 GiB on an H200.
uint64_t DefaultReserve(uint64_t total) { return total / 32; }

}  // namespace

int main(int argc, char** argv) {
  std::string driver;
  int device = -1;
  int control = -1;
  int ledger_descriptor = -1;
  long long reserve = -1;  // MiB
  for (int i = 1; i + 1 < argc; i += 2) {
    std::string name = argv[i];
    if (name == "--driver")
      driver = argv[i + 1];
    else if (name == "--device")
      device = std::atoi(argv[i + 1]);
    else if (name == "--control")
      control = std::atoi(argv[i + 1]);
    else if (name == "--ledger")
      ledger_descriptor = std::atoi(argv[i + 1]);
    else if (name == "--reserve")
      reserve = std::atoll(argv[i + 1]);
    else
      return Usage();
  }
  if (argc % 2 == 0 || driver.empty() || device < 0 || control < 0) return Usage();

  longwire::wire::PrepareDescriptorTable();
  longwire::wire::Descriptor socket(control);
  KeeperState state;
  auto memory = longwire::keeper::OpenChosenDevice(driver, device, &state);
  if (memory == nullptr) {
    std::fprintf(stderr, "longwire-keeper: %s\n", state.sentence.c_str());
    (void)longwire::wire::SendMessage(control, longwire::message::Pack(state));
    return 1;
  }
  longwire::keeper::PoolOptions options;
  options.scrub = !longwire::wire::GuardIsOff("scrub");
  options.drain = !longwire::wire::IsSwitchedOff("drain");
  options.swap = !longwire::wire::IsSwitchedOff("swap");
  uint64_t total = memory->identity().total;
  options.reserve = reserve >= 0 ? static_cast<uint64_t>(reserve) << 20 : DefaultReserve(total);
  std::unique_ptr<longwire::keeper::TenantLedger> ledger;
  std::optional<longwire::keeper::Quota> quota;
  if (ledger_descriptor >= 0) {
    ledger = longwire::keeper::TenantLedger::Map(longwire::wire::Descriptor(ledger_descriptor));
    if (ledger == nullptr) return Usage();
    options.quota = &quota.emplace(*ledger, device, !longwire::wire::GuardIsOff("quota"));
  }
  longwire::keeper::Keeper keeper(*memory, options, std::move(socket), std::move(state));
  keeper.Run();
  std::fflush(stderr);
  std::_Exit(0);  // the driver's threads still run; its memory goes with the process
}
