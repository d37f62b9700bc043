#include "server/daemon/access/removals.h"

#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/poll_set.h"
#include "link/transport/codes.h"
#include "link/transport/log.h"
#include "server/config/units.h"
#include "server/daemon/settings/tenants.h"
#include "wire/guards.h"

namespace longwire::daemon {
namespace {

using std::chrono::milliseconds;

// An opening takes no longer (session.cc, warden_client.cc).
constexpr std::chrono::minutes kLongestOpening{3};
// An idle session is looked at ten times in its limit, but no more often than this.
constexpr milliseconds kShortestLook{100};
constexpr milliseconds kLongestLook{5000};
constexpr int kLooks = 10;
// Without inotify the file is looked at this often.
constexpr milliseconds kFileLook{500};

std::string DurationText(uint64_t nanoseconds) {
  return config::UnitText(config::DURATION, nanoseconds);
}

// Who the client of the session is under this configuration.
Peer PeerNow(const Peer& then, const config::LiveConfig::Snapshot& config) {
  if (then.uid) return LocalPeer(*then.uid, config);
  Peer now = then;
  now.tenant = FindTenant(config, then.identity);
  return now;
}

std::set<uint64_t> BusySessions(Scheduling& scheduling) {
  std::set<uint64_t> busy;
  for (const SeatFigures& seat : scheduling.Seats()) {
    if (seat.busy) busy.insert(seat.session);
  }
  return busy;
}

bool HasTimes(const config::Config& config) {
  return std::ranges::any_of(config.tenants(), [](const config::Tenant& tenant) {
    return tenant.has_longest_idle() || tenant.has_longest_session();
  });
}

transport::Closed Ended(std::string sentence) {
  return {static_cast<uint32_t>(transport::kLaunchFailed), std::move(sentence)};
}

}  // namespace

Removals::Removals(SessionTable& table, Revocations& revocations, Distrust distrust)
    : table_(table),
      revocations_(revocations),
      distrust_(std::move(distrust)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      alarm_(timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK)) {}

void Removals::Start() {
  thread_ = std::thread([this] { Loop(); });
}

void Removals::Stop() {
  if (stopping_.exchange(true) || !thread_.joinable()) return;
  eventfd_write(wake_.get(), 1);
  thread_.join();
}

std::string Removals::WhyRemoved(const ServerSession& session,
                                 const config::LiveConfig::Snapshot& config) {
  if (wire::GuardIsOff("removal")) return {};
  const Peer& then = session.client().peer;
  const Peer now = PeerNow(then, config);
  if (now.refused()) {
    return "the identity '" + then.identity +
           "' was taken out of the server's configuration by its administrator";
  }
  if (now.tenant->name() != then.tenant->name()) {
    return "the identity '" + then.identity + "' belongs to the tenant '" + now.tenant->name() +
           "' now and no longer to '" + then.tenant->name() + "'; start the program again";
  }
  const Proof proof = session.proof();
  std::string distrust = proof.certificates.empty() ? "" : distrust_(proof.certificates);
  if (!distrust.empty()) return distrust;
  if (proof.expires == 0 || std::time(nullptr) <= proof.expires) return {};
  return "the certificate of '" + then.identity + "' expired on " +
         transport::DateText(proof.expires) + "; get a new one and start the program again";
}

void Removals::CheckAll() {
  const config::LiveConfig::Snapshot config = table_.config();
  for (const auto& session : table_.List()) {
    std::string reason = WhyRemoved(*session, config);
    if (!reason.empty()) table_.End(session, Ended(std::move(reason)));
  }
  eventfd_write(wake_.get(), 1);
}

std::string Removals::CheckNew(const ServerSession& session) {
  std::string reason = WhyRemoved(session, table_.config());
  if (reason.empty()) {
    const Peer& peer = session.client().peer;
    base::MutexLock lock(mutex_);
    for (const std::string& name : {peer.identity, peer.tenant->name()}) {
      auto found = evicted_.find(name);
      if (found == evicted_.end() || found->second < session.opened()) continue;
      reason = "the server's administrator has just ended the sessions of '" + name + "'";
    }
  }
  if (reason.empty()) eventfd_write(wake_.get(), 1);  // its times count from now on
  return reason;
}

std::optional<size_t> Removals::Evict(const std::string& name) {
  {
    base::MutexLock lock(mutex_);
    auto now = Clock::now();
    std::erase_if(evicted_,
                  [&](const auto& entry) { return entry.second + kLongestOpening < now; });
    evicted_[name] = now;
  }
  bool known = false;
  for (const config::Tenant& tenant : table_.config()->tenants()) {
    known |= tenant.name() == name || std::ranges::count(tenant.identities(), name) != 0;
  }
  size_t ended = 0;
  for (const auto& session : table_.List()) {
    const Peer& peer = session->client().peer;
    bool is_tenant = peer.tenant->name() == name;
    if (!is_tenant && peer.identity != name) continue;
    table_.End(session, Ended("the server's administrator ended all sessions of the " +
                              std::string(is_tenant ? "tenant '" : "identity '") + name + "'"));
    ++ended;
  }
  if (ended == 0 && !known) return std::nullopt;
  return ended;
}

std::string Removals::WhyOver(ServerSession& session, const config::Tenant& tenant, bool busy,
                              Times* times) {
  const auto now = Clock::now();
  if (tenant.has_longest_session()) {
    auto end =
        session.opened() - session.earlier.ran + std::chrono::nanoseconds(tenant.longest_session());
    if (now >= end) {
      return "it ran for as long as the tenant '" + tenant.name() +
             "' may keep a session (longest_session: " + DurationText(tenant.longest_session()) +
             "); start the program again";
    }
    times->look = std::min(times->look, end);
  }
  if (!tenant.has_longest_idle()) return {};
  const std::chrono::nanoseconds limit(tenant.longest_idle());
  const uint64_t bytes = session.bytes_up() + session.bytes_down();
  Activity& activity = activities_[session.id()];
  if (busy || activity.bytes != bytes || activity.since == Clock::time_point()) {
    activity = {bytes, now};
  } else if (now - activity.since >= limit) {
    return "it did nothing for as long as a session of the tenant '" + tenant.name() +
           "' may be idle (longest_idle: " + DurationText(tenant.longest_idle()) +
           "); start the program again";
  }
  auto look = std::clamp<std::chrono::nanoseconds>(limit / kLooks, kShortestLook, kLongestLook);
  times->look = std::min({times->look, now + look, std::max(activity.since + limit, now)});
  return {};
}

Removals::Times Removals::CheckTimes() {
  Times times;
  const config::LiveConfig::Snapshot config = table_.config();
  const bool limited = HasTimes(*config);
  const std::set<uint64_t> busy =
      limited ? BusySessions(table_.scheduling()) : std::set<uint64_t>();
  std::set<uint64_t> running;
  for (const auto& session : table_.List()) {
    running.insert(session->id());
    const Peer& peer = session->client().peer;
    const std::time_t expires = session->proof().expires;
    std::string reason;
    if (expires != 0 && std::time(nullptr) > expires) reason = WhyRemoved(*session, config);
    auto tenant = limited && reason.empty() ? FindTenant(config, peer.identity) : nullptr;
    if (tenant != nullptr) {
      reason = WhyOver(*session, *tenant, busy.contains(session->id()), &times);
    }
    if (!reason.empty()) {
      table_.End(session, Ended(std::move(reason)));
    } else if (expires != 0 && (times.expiry == 0 || expires < times.expiry)) {
      times.expiry = expires;
    }
  }
  std::erase_if(activities_, [&](const auto& entry) { return !running.contains(entry.first); });
  return times;
}

void Removals::SetAlarm(std::time_t expiry) {
  itimerspec when{};
  if (expiry != 0) when.it_value.tv_sec = expiry + 1;  // it is valid in that second
  timerfd_settime(alarm_.get(), TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &when, nullptr);
}

// The folder, not the file: a file that is replaced is another one.
void Removals::Watch() {
  const std::string path = revocations_.path();
  const std::string folder = path.substr(0, path.rfind('/') + 1);
  if (folder == watched_) return;
  watched_ = folder;
  changes_.Reset(folder.empty() ? -1 : inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (changes_.valid() &&
      inotify_add_watch(changes_.get(), folder.c_str(), IN_CLOSE_WRITE | IN_MOVED_TO) < 0) {
    changes_.Reset();
  }
}

void Removals::Loop() {
  std::array<char, 4096> events;
  base::PollSet set;
  while (!stopping_.load()) {
    Watch();
    if (revocations_.ReadAgain()) CheckAll();
    const Times times = CheckTimes();
    SetAlarm(times.expiry);
    milliseconds wait(-1);
    if (times.look != Clock::time_point::max()) {
      auto left = std::chrono::ceil<milliseconds>(times.look - Clock::now());
      wait = std::clamp(left, milliseconds(1), milliseconds(std::chrono::hours(1)));
    }
    if (!changes_.valid() && !revocations_.path().empty()) {
      wait = wait.count() < 0 ? kFileLook : std::min(wait, kFileLook);
    }
    set.Clear();
    base::PollSet::Entry alarm = set.Add(alarm_.get());
    base::PollSet::Entry wake = set.Add(wake_.get());
    if (changes_.valid()) set.Add(changes_.get());
    if (set.Wait(wait) < 0) usleep(10'000);
    eventfd_t count = 0;
    uint64_t rings = 0;
    if (set.Ready(wake)) eventfd_read(wake_.get(), &count);
    // ECANCELED: the clock was set. Either way the certificates are looked at again.
    if (set.Ready(alarm) && read(alarm_.get(), &rings, sizeof(rings)) < 0) continue;
    while (changes_.valid() && read(changes_.get(), events.data(), events.size()) > 0) {
    }
  }
}

}  // namespace longwire::daemon
