#include "server/admission/entrance.h"

#include "server/config/config.h"
#include "wire/guards.h"

namespace longwire::admission {
namespace {

using std::chrono::milliseconds;

// Calls with one answer that run at once: openings wait for their workers.
constexpr Capacity::Limits kCalls{128, 512};
// Peers that are refused share these: they are only told why.
constexpr size_t kRefusedAtOnce = 16;
constexpr const char* kRefused = "";

std::string HostOf(const std::string& peer) { return peer.substr(0, peer.rfind(':')); }

size_t CountIdentities(const config::Config& config) {
  size_t identities = 0;
  for (const config::Tenant& tenant : config.tenants()) {
    identities += static_cast<size_t>(tenant.identities_size());
  }
  return identities;
}

}  // namespace

Entrance::Entrance(const config::LiveConfig& live)
    : live_(live), connections_([this] {
        const auto config = live_.Get();
        return Connections::Limits{config->admission().waiting_of_address(), Plan().waiting,
                                   config->admission().waiting_memory(), opening_time()};
      }) {}

milliseconds Entrance::opening_time() const {
  return std::chrono::duration_cast<milliseconds>(
      std::chrono::nanoseconds(live_.Get()->admission().opening_time()));
}

DescriptorPlan Entrance::Plan() const {
  return PlanOwnDescriptors(live_.Get()->admission().waiting());
}

Capacity::Limits Entrance::LocalLimits() const {
  return {live_.Get()->admission().waiting_of_identity(), Plan().waiting};
}

std::optional<Entrance::StreamShares> Entrance::EnterStream(const std::string& identity,
                                                            const std::string& peer, size_t own) {
  const auto config = live_.Get();
  const config::Admission& told = config->admission();
  const size_t all = Plan().waiting;
  const size_t each = identity.empty() ? kRefusedAtOnce : told.waiting_of_identity();
  auto of_identity = streams_.Take(identity.empty() ? kRefused : identity, {each, all}, own);
  if (!of_identity) return std::nullopt;
  // An address may stand for many users: those who have sessions resume them all the same.
  auto of_address = addresses_.Take(HostOf(peer), {told.waiting_of_address(), all}, own);
  if (!of_address) return std::nullopt;
  return StreamShares{std::move(*of_identity), std::move(*of_address)};
}

std::optional<Capacity::Share> Entrance::EnterCall(const std::string& party) {
  return calls_.Take(party, kCalls);
}

bool Entrance::AwaitOpening(const std::string& identity, const std::atomic<bool>& cancelled,
                            std::string* sentence) {
  const auto config = live_.Get();
  const config::Admission& told = config->admission();
  const uint32_t per_second = config::OpeningsPerSecond(*config);
  const Openings::Rate rate{static_cast<double>(per_second),
                            static_cast<double>(told.openings_at_once())};
  if (openings_.Await(identity, rate, cancelled)) return true;
  *sentence = "'" + identity +
              "' opens sessions too fast: " + std::to_string(told.openings_at_once()) +
              " at once and " + std::to_string(per_second) +
              " a second are allowed; try again in a few seconds, or ask the administrator to "
              "raise admission.openings_per_second";
  return false;
}

size_t Entrance::SessionsOfIdentity() const {
  const auto config = live_.Get();
  if (config->admission().has_sessions_of_identity()) {
    return config->admission().sessions_of_identity();
  }
  // The last quarter is for others, where there are any.
  return CountIdentities(*config) < 2 ? SIZE_MAX : (3 * size_t{config->max_sessions()} + 3) / 4;
}

Entrance::Entry Entrance::EnterSession(const std::string& identity, size_t descriptors,
                                       std::string* sentence) {
  const size_t most = SessionsOfIdentity();
  const DescriptorPlan plan = Plan();
  const bool limited = !wire::GuardIsOff("waiting");
  base::MutexLock lock(mutex_);
  auto held = sessions_.find(identity);
  const size_t count = held == sessions_.end() ? 0 : held->second;
  Entry entry = Entry::kEntered;
  if (limited && count >= most) {
    entry = Entry::kTooManyOfIdentity;
    *sentence = "'" + identity + "' has " + std::to_string(count) +
                " sessions already; one identity may have " + std::to_string(most) +
                " (admission.sessions_of_identity)";
  } else if (limited && held_ + descriptors > plan.sessions) {
    entry = Entry::kTooFewDescriptors;
    *sentence = "the server has no descriptors for more sessions: it may have " +
                std::to_string(plan.limit) +
                "; its administrator can raise LimitNOFILE (ulimit -Hn) of longwired";
  } else {
    ++sessions_[identity];
    held_ += descriptors;
    return entry;
  }
  refused_sessions_.fetch_add(1);
  return entry;
}

void Entrance::InheritSession(const std::string& identity, size_t descriptors) {
  base::MutexLock lock(mutex_);
  ++sessions_[identity];
  held_ += descriptors;
}

void Entrance::LeaveSession(const std::string& identity, size_t descriptors) {
  base::MutexLock lock(mutex_);
  held_ -= descriptors;
  if (--sessions_[identity] == 0) sessions_.erase(identity);
}

Entrance::Figures Entrance::figures() {
  Figures figures;
  const Connections::Figures network = connections_.figures();
  figures.connections = network.waiting + static_cast<uint64_t>(local_waiting_.load());
  figures.closed = network.closed + local_closed_.load();
  figures.streams = streams_.taken();
  figures.refused_streams = streams_.refused() + addresses_.refused();
  figures.refused_calls = calls_.refused();
  figures.refused_rate = openings_.refused();
  figures.refused_limit = refused_sessions_.load();
  figures.descriptors = Plan();
  figures.waiting_limit = figures.descriptors.waiting;
  base::MutexLock lock(mutex_);
  figures.held_descriptors = held_;
  return figures;
}

}  // namespace longwire::admission
