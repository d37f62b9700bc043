// longwire-keeper: owns the physical memory of one device and lends it to workers.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/reason.h"
#include "server/driver/process_options.h"
#include "server/keeper/chosen_device.h"
#include "server/keeper/greeting.h"
#include "server/keeper/keeper.h"
#include "wire/descriptor_table.h"
#include "wire/descriptors.h"
#include "wire/guards.h"
#include "wire/switches.h"

namespace {

using longwire::keeper::KeeperState;

constexpr const char* kUsage =
    "usage: longwire-keeper --driver auto|software|PATH --device N --control FD\n"
    "                       [--reserve MIB] [--ledger FD] [--lent FD]\n"
    "Started by longwire-warden.\n";

constexpr int64_t kLargestReserve = int64_t{1} << 32;  // MiB

struct Arguments {
  std::string driver;
  int64_t device = -1;
  int64_t control = -1;
  int64_t ledger = -1;
  int64_t lent = -1;
  int64_t reserve = -1;  // MiB; without it, by the device's memory
};

// False with sentences on standard error.
bool Parse(int count, char** words, Arguments* arguments) {
  const longwire::ProcessOption options[] = {
      {"--driver", &arguments->driver},   {"--device", &arguments->device},
      {"--control", &arguments->control}, {"--ledger", &arguments->ledger},
      {"--lent", &arguments->lent},       {"--reserve", &arguments->reserve, kLargestReserve}};
  std::span<char*> given(words, static_cast<size_t>(count));
  std::string problem = longwire::ParseProcessOptions(given.subspan(1), options);
  bool complete = !arguments->driver.empty() && arguments->device >= 0 && arguments->control >= 0;
  if (problem.empty() && complete) return true;
  if (!problem.empty()) std::fprintf(stderr, "longwire-keeper: %s\n", problem.c_str());
  std::fputs(kUsage, stderr);
  return false;
}

// The estimated device memory of workers' contexts, modules and stacks: a context takes about 0.5
// GiB of 139 GiB on an H200.
uint64_t DefaultReserve(uint64_t total) { return total / 32; }

}  // namespace

int main(int argc, char** argv) {
  longwire::wire::OpenStandardDescriptors();
  longwire::base::SayWhyTerminated("longwire-keeper");
  std::string first = argc == 2 ? argv[1] : "";
  if (first == "--help" || first == "--version") {
    std::fputs(first == "--help" ? kUsage : "longwire-keeper " LONGWIRE_VERSION "\n", stdout);
    return 0;
  }
  Arguments arguments;
  if (!Parse(argc, argv, &arguments)) return 2;

  longwire::wire::PrepareDescriptorTable();
  for (const std::string& sentence : longwire::wire::UnknownSwitches()) {
    std::fprintf(stderr, "longwire-keeper: %s\n", sentence.c_str());
  }
  longwire::wire::Descriptor socket(static_cast<int>(arguments.control));
  const int device = static_cast<int>(arguments.device);
  KeeperState state;
  std::unique_ptr<longwire::keeper::DeviceMemory> memory;
  const uint32_t warden_version = longwire::keeper::GreetWarden(socket.get(), &state);
  if (warden_version != 0) {
    memory = longwire::keeper::OpenChosenDevice(arguments.driver, device, &state);
  }
  if (memory == nullptr) {
    std::fprintf(stderr, "longwire-keeper: %s\n", state.sentence.c_str());
    (void)longwire::wire::SendMessage(socket.get(), longwire::message::Pack(state));
    return 1;
  }
  longwire::keeper::PoolOptions options;
  options.device = device;
  options.scrub = !longwire::wire::GuardIsOff("scrub");
  options.drain = !longwire::wire::IsSwitchedOff("drain");
  options.swap = !longwire::wire::IsSwitchedOff("swap");
  uint64_t total = memory->identity().total;
  options.reserve = arguments.reserve >= 0 ? static_cast<uint64_t>(arguments.reserve) << 20
                                           : DefaultReserve(total);
  std::unique_ptr<longwire::keeper::TenantLedger> ledger;
  std::optional<longwire::keeper::Quota> quota;
  if (arguments.ledger >= 0) {
    longwire::wire::Descriptor table(static_cast<int>(arguments.ledger));
    ledger = longwire::keeper::TenantLedger::Map(std::move(table));
    if (ledger == nullptr) {
      std::fputs("longwire-keeper: --ledger is no ledger\n", stderr);
      return 2;
    }
    options.quota = &quota.emplace(*ledger, device, !longwire::wire::GuardIsOff("quota"));
  }
  std::unique_ptr<longwire::keeper::LoanTable> loans;
  if (arguments.lent >= 0) {
    loans = longwire::keeper::LoanTable::Map(
        longwire::wire::Descriptor(static_cast<int>(arguments.lent)));
    if (loans == nullptr) {
      std::fputs("longwire-keeper: --lent is no table of loans\n", stderr);
      return 2;
    }
    options.loans = loans.get();
  }
  longwire::keeper::Keeper keeper(*memory, options, std::move(socket), std::move(state));
  keeper.SetWardenVersion(warden_version);
  keeper.Run();
  std::fflush(stderr);
  std::_Exit(0);  // the driver's threads still run; its memory goes with the process
}
