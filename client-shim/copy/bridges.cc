#include "client-shim/copy/bridges.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <utility>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "client-shim/connect/options.h"
#include "client-shim/support/never_destroyed.h"
#include "longwire/calls.h"
#include "wire/switches.h"

namespace longwire::shim {
namespace {

using Clock = std::chrono::steady_clock;

// So long nothing moves before the bridge is looked at.
constexpr std::chrono::milliseconds kLook{1000};
// How long a broken bridge is mended. The servers notice a cut cable within 12 s before that.
constexpr std::chrono::seconds kMendPatience{10};
// The program ends, perhaps as a server does not answer any more.
constexpr std::chrono::seconds kFiguresPatience{2};

struct Bridge {
  enum class State { kUnknown, kThere, kMissing, kEnded };
  State state = State::kUnknown;
  ClientSession* connects = nullptr;  // the one whose server connects to the other
  ClientSession* other = nullptr;
  std::string why;  // it is missing
};

struct Bridges {
  base::Mutex mutex{base::ranks::kBridges};
  std::map<std::pair<int, int>, Bridge> all LONGWIRE_GUARDED_BY(mutex);  // by servers' places
};

Bridges& TheBridges() {
  static NeverDestroyed<Bridges> bridges;
  return *bridges;
}

std::pair<int, int> KeyOf(const ClientSession& a, const ClientSession& b) {
  return std::minmax({a.server(), b.server()});
}

Bridge Find(const ClientSession& a, const ClientSession& b) {
  base::MutexLock lock(TheBridges().mutex);
  return TheBridges().all[KeyOf(a, b)];
}

void Set(const ClientSession& a, const ClientSession& b, const Bridge& bridge) {
  base::MutexLock lock(TheBridges().mutex);
  TheBridges().all[KeyOf(a, b)] = bridge;
}

constexpr const char* kNoAnswer = "a server does not answer";

// Empty, or why they are not connected.
std::string Connect(ClientSession& from, ClientSession& to) {
  calls::lwBridgeOffer offer;
  offer.bridge = BridgeNumber(from, to);
  auto offered = from.CallAndWait({}, offer);
  if (offered.code != CUDA_SUCCESS) return kNoAnswer;
  calls::lwBridgeTicket ask;
  ask.bridge = BridgeNumber(to, from);
  ask.digest = offered.reply.digest;
  auto ticket = to.CallAndWait({}, ask);
  if (ticket.code != CUDA_SUCCESS) return kNoAnswer;
  calls::lwBridgeConnect connect;
  connect.bridge = offer.bridge;
  connect.address = to.name();
  connect.session = to.opened().session;
  connect.ticket = ticket.reply.ticket;
  connect.first_lane = ticket.reply.first_lane;
  connect.epoch = ticket.reply.epoch;
  auto connected = from.CallAndWait({}, connect);
  if (connected.code != CUDA_SUCCESS) return kNoAnswer;
  return std::string(connected.reply.sentence);
}

std::string BetweenText(const ClientSession& from, const ClientSession& to) {
  return "copies between " + from.name() + " and " + to.name();
}

// In the one direction, or in the other: a firewall may let one of them pass.
Bridge Build(ClientSession& from, ClientSession& to) {
  Bridge bridge{Bridge::State::kThere, &from, &to, {}};
  if (from.opened().bridge_lanes == 0 || to.opened().bridge_lanes == 0) {
    bridge.state = Bridge::State::kMissing;
    bridge.why = BetweenText(from, to) + " pass through this host: " +
                 (from.opened().bridge_lanes == 0 ? from : to).name() +
                 " builds no bridges; upgrade longwired there";
    return bridge;
  }
  const std::string why = Connect(from, to);
  if (why.empty()) return bridge;
  const std::string why_back = Connect(to, from);
  std::swap(bridge.connects, bridge.other);
  if (why_back.empty()) return bridge;
  bridge.state = Bridge::State::kMissing;
  bridge.why = BetweenText(from, to) + " pass through this host: " + from.name() +
               " cannot connect to " + to.name() + " (" + why + "), nor the other way round (" +
               why_back + ")";
  if (ProcessOptions().log) Say("%s", bridge.why.c_str());
  return bridge;
}

bool IsConnected(const Bridge& bridge) {
  calls::lwBridgeState ask;
  ask.bridge = BridgeNumber(*bridge.connects, *bridge.other);
  auto answer = bridge.connects->CallAndWait({}, ask);
  return answer.code == CUDA_SUCCESS && answer.reply.connected;
}

// Also in the other direction: where the first one's daemon is gone the other's may be there.
bool Mend(const Bridge& bridge) {
  return IsConnected(bridge) || Connect(*bridge.connects, *bridge.other).empty();
}

}  // namespace

uint32_t BridgeLanesFor(int servers, uint32_t own_lanes) {
  if (servers < 2 || wire::IsSwitchedOff("bridges")) return 0;
  return wire::BridgeLanes(static_cast<uint32_t>(servers) - 1, own_lanes);
}

bool HasWholeCopies() { return !wire::IsSwitchedOff("whole-copies"); }

uint32_t BridgeNumber(const ClientSession& of, const ClientSession& to) {
  return static_cast<uint32_t>(to.server() < of.server() ? to.server() + 1 : to.server());
}

bool HasBridge(ClientSession& from, ClientSession& to) {
  const int servers = static_cast<int>(Sessions().size());
  if (BridgeLanesFor(servers, ProcessOptions().lanes) == 0) return false;  // as was asked for
  Bridge bridge = Find(from, to);
  if (bridge.state == Bridge::State::kUnknown) {
    bridge = Build(from, to);
    Set(from, to, bridge);
  }
  return bridge.state == Bridge::State::kThere;
}

bool AwaitOverBridge(ClientSession& from, ClientSession& to, FunctionRef<bool()> done,
                     FunctionRef<bool()> failed) {
  const Bridge bridge = Find(from, to);
  Clock::time_point deadline = Clock::time_point::max();  // for mending it
  while (bridge.state == Bridge::State::kThere) {
    const bool over = !to.WaitUntil([&] { return done() || failed(); }, Clock::now() + kLook);
    if (done()) return true;
    if (failed() || from.ended() != CUDA_SUCCESS || to.ended() != CUDA_SUCCESS) break;
    if (!over || Mend(bridge)) {
      deadline = Clock::time_point::max();
      continue;
    }
    if (deadline == Clock::time_point::max()) deadline = Clock::now() + kMendPatience;
    if (Clock::now() >= deadline) break;
  }
  EndBridge(from, to);
  return false;
}

void EndBridge(ClientSession& from, ClientSession& to) {
  Bridge bridge = Find(from, to);
  bridge.state = Bridge::State::kEnded;
  Set(from, to, bridge);
  for (auto [of, other] : {std::pair{&from, &to}, {&to, &from}}) {
    calls::lwBridgeEnd end;
    end.bridge = BridgeNumber(*of, *other);
    of->Submit({}, end);
  }
}

std::string BridgeFigures(ClientSession& session) {
  if (session.opened().bridges_hold_back == 0 || session.ended() != CUDA_SUCCESS) return {};
  bool any = false;
  {
    base::MutexLock lock(TheBridges().mutex);
    for (const auto& [key, bridge] : TheBridges().all) {
      any |= bridge.connects == &session || bridge.other == &session;
    }
  }
  if (!any) return {};
  struct Answered {
    std::string sentence;
    std::atomic<bool> done{false};
  };
  auto answered = std::make_shared<Answered>();
  session.CallThen({}, calls::lwBridgeFigures(),
                   [answered](CUresult code, std::span<const std::byte> bytes) {
                     wire::Reader reader(bytes);
                     calls::lwBridgeFigures::Reply reply;
                     if (code == CUDA_SUCCESS && reply.Decode(reader) == wire::WireResult::kOk) {
                       answered->sentence = reply.sentence;
                     }
                     answered->done.store(true, std::memory_order_release);
                   });
  auto done = [&] { return answered->done.load(std::memory_order_acquire); };
  return session.WaitUntil(done, Clock::now() + kFiguresPatience) ? answered->sentence
                                                                  : std::string();
}

std::vector<std::string> MissingBridges() {
  std::vector<std::string> sentences;
  base::MutexLock lock(TheBridges().mutex);
  for (const auto& [key, bridge] : TheBridges().all) {
    if (bridge.state == Bridge::State::kMissing) sentences.push_back(bridge.why);
  }
  return sentences;
}

}  // namespace longwire::shim
