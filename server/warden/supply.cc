// The processes that the warden keeps ready: a keeper for each device, and warm workers.
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "base/cuda_codes.h"
#include "base/reason.h"
#include "server/protocol/hello.h"
#include "server/warden/warden.h"

namespace longwire::warden {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kOpenDevices{60'000};  // longest wait for a device
constexpr milliseconds kKeeperRetry{1'000};   // between attempts to start a keeper
constexpr milliseconds kWarmDelay{200};       // a starting session has the processors first
// Between warm workers of a device on which a latency-critical session is: the driver makes a
// context, and what runs there stands still for up to 8 ms meanwhile.
constexpr milliseconds kWarmBesideCritical{2'000};
constexpr milliseconds kPauseMax{60'000};  // between processes that keep dying
constexpr milliseconds kEarlyDeath{5'000};

// Grows for processes that die early; the shortest for others.
milliseconds NextPause(milliseconds last, std::chrono::steady_clock::time_point started,
                       milliseconds shortest) {
  bool early = std::chrono::steady_clock::now() - started < kEarlyDeath;
  return early ? std::min(std::max(last * 2, shortest), kPauseMax) : shortest;
}

}  // namespace

int Warden::OpenDevices(std::string* sentence) {
  if (ledger_ == nullptr) ledger_ = keeper::TenantLedger::Create();  // errno says why not
  *sentence = "the tenants' ledger cannot be made: " + base::Reason(errno);
  if (ledger_ == nullptr) return base::kSystemNotReady;
  int32_t first = options_.devices.empty() ? 0 : options_.devices[0];
  Keeper* keeper = RunningKeeper(first, sentence);
  if (keeper == nullptr) return base::kSystemNotReady;
  AwaitKeeper(*keeper);
  if (keeper->state.code != 0) {
    *sentence = keeper->state.sentence;
    int code = keeper->state.code;
    warden::Kill(keeper->process);
    return code;
  }
  driver_ = keeper->state.driver;
  // NVIDIA's driver may need the network's namespace to reach its own services.
  software_ = keeper->state.software;
  own_network_ = software_ && CanIsolateNetwork();
  bool all = options_.devices.empty();
  for (int32_t i = 0; all && i < keeper->state.device_count; ++i) options_.devices.push_back(i);
  // All at once: each takes its time.
  std::string problem;
  for (int32_t device : options_.devices) RunningKeeper(device, &problem);
  for (int32_t device : options_.devices) {
    Keeper& other = keepers_[device];
    if (device != first && other.process.pid != 0) AwaitKeeper(other);
    if (other.state.code == 0) continue;
    std::fprintf(stderr, "longwire-warden: device %d is not served: %s\n", device,
                 other.state.sentence.c_str());
  }
  KeepStarter();
  return 0;
}

// The keeper's first state: the device is open, or the reason why not.
void Warden::AwaitKeeper(Keeper& keeper) {
  bool closed = false;
  auto message = wire::ReceiveMessage(keeper.control.get(), kOpenDevices, &closed);
  if (message && keeper.version == 0 && !GreetKeeper(keeper, message->bytes)) {
    if (keeper.version == 0) return;
    message = wire::ReceiveMessage(keeper.control.get(), kOpenDevices, &closed);
  }
  if (message && message::Unpack(message->bytes, &keeper.state) == wire::WireResult::kOk) {
    keeper.ready = keeper.state.code == 0;
    return;
  }
  keeper.state.code = base::kSystemNotReady;
  keeper.state.sentence = closed ? "the keeper died" : "the device does not open";
}

Warden::Keeper* Warden::RunningKeeper(int32_t device, std::string* sentence) {
  Keeper& keeper = keepers_[device];
  if (keeper.process.pid != 0) return &keeper;
  if (Clock::now() < keeper.not_before) {
    *sentence = "device " + std::to_string(device) + ": " + keeper.state.sentence;
    return nullptr;
  }
  bool succeeds = keeper.loans != nullptr;
  if (!succeeds) keeper.loans = keeper::LoanTable::Create();
  wire::Descriptor end;
  if (keeper.loans == nullptr || !wire::LocalPair(&keeper.control, &end)) {
    *sentence = "no keeper can be started: " + base::Reason(errno);
    return nullptr;
  }
  fcntl(keeper.control.get(), F_SETFL, O_NONBLOCK);
  keeper.started = Clock::now();
  keeper.not_before = keeper.started + kKeeperRetry;  // if it cannot be started
  keeper.version = 0;
  // Sent before the keeper starts, which reads it first.
  if (wire::SpeaksRanges()) {
    (void)wire::SendMessage(keeper.control.get(), message::Pack(message::Hello{}));
  }
  keeper.process =
      Spawn({options_.keeper_program,
             {"--driver", driver_.empty() ? options_.driver : driver_, "--device",
              std::to_string(device), "--control", "3", "--ledger", "4", "--lent", "5"},
             {},
             {end.get(), ledger_->descriptor(), keeper.loans->descriptor()},
             false});
  if (keeper.process.pid == 0) {
    *sentence = "no keeper can be started: " + base::ReasonOfNoThread(errno);
    keeper.state.sentence = *sentence;
    return nullptr;
  }
  keeper.last_event = 0;  // its numbering starts again
  (void)wire::SendMessage(keeper.control.get(), message::Pack(limits_));
  if (policy_.number != 0) SendPolicy(keeper);
  if (succeeds) BeginSuccession(device);
  return &keeper;
}

// The daemon sees only devices whose keepers run.
bool Warden::KeepKeepers() {
  std::string sentence;
  bool lacks = false;
  for (int32_t device : options_.devices) {
    Keeper& keeper = keepers_[device];
    HangUpLate(device);
    if (keeper.process.pid != 0) continue;
    lacks = true;
    RunningKeeper(device, &sentence);
  }
  return lacks;
}

bool Warden::KeepWarm() {
  std::map<int32_t, int> warm;
  for (auto& [number, worker] : workers_) {
    if (worker.session == 0 && worker.devices.size() == 1) ++warm[worker.devices[0]];
  }
  auto now = Clock::now();
  if (now < warm_after_) return true;
  bool lacks = false;
  for (int32_t device : options_.devices) {
    auto own = options_.warm_workers_of.find(device);
    int wanted = own != options_.warm_workers_of.end() ? own->second : options_.warm_workers;
    Warm& state = warm_[device];
    if (warm[device] >= wanted) continue;
    lacks = true;
    if (now < state.after) continue;
    if (now < state.started + kWarmBesideCritical && HasLatencyCritical(device)) continue;
    std::string sentence;
    if (StartNewWorker({device}, {}, &sentence) == 0) {
      state.after = now + kKeeperRetry;
    } else {
      state.started = now;
    }
    return true;  // one at a time: sessions come first
  }
  return lacks;
}

bool Warden::HasLatencyCritical(int32_t device) const {
  return std::ranges::any_of(workers_, [&](const auto& entry) {
    const Worker& worker = entry.second;
    return worker.session != 0 && ledger_->latency_critical(worker.tenant) &&
           std::ranges::find(worker.devices, device) != worker.devices.end();
  });
}

void Warden::WarmDied(const Worker& worker) {
  Warm& state = warm_[worker.devices[0]];
  state.pause = NextPause(state.pause, worker.started, kWarmDelay);
  state.after = Clock::now() + state.pause;
}

// A warm worker that must not get a session.
void Warden::Discard(Worker& worker) {
  worker.devices.clear();
  Kill(worker);
}

}  // namespace longwire::warden
