#include "web/events.h"

#include <map>
#include <set>
#include <utility>

#include "cli/text.h"

namespace longwire::web {
namespace {

using transport::InspectReply;
using transport::Session;

constexpr size_t kMaxText = 600;

std::map<uint64_t, const Session*> ById(const InspectReply& reply) {
  std::map<uint64_t, const Session*> sessions;
  for (const Session& session : reply.sessions()) sessions[session.id()] = &session;
  return sessions;
}

std::string NameOf(const Session& session) {
  return "session " + std::to_string(session.id()) + " of " + session.identity() + " (" +
         session.tenant() + "): " + session.program() + " on " + session.client_host();
}

// Sessions keep their numbers when a daemon follows another; after a new start of all they do not.
bool IsSame(const Session& one, const Session& other) {
  return one.program() == other.program() && one.identity() == other.identity() &&
         one.client_host() == other.client_host() && one.client_pid() == other.client_pid();
}

// With ": " before it; empty where the server does not say.
std::string WhyEnded(const Session& session, const InspectReply& now) {
  for (const transport::EndedSession& ended : now.ended()) {
    const bool same = ended.id() == session.id() && ended.identity() == session.identity() &&
                      ended.program() == session.program();
    if (same && !ended.reason().empty()) return ": " + ended.reason();
  }
  return "";
}

std::string Times(uint64_t count, const char* one, const char* many) {
  return std::to_string(count) + " " + (count == 1 ? one : many);
}

}  // namespace

void Events::Add(double seconds, std::string kind, std::string tenant, std::string text) {
  if (text.size() > kMaxText) text = text.substr(0, kMaxText) + "…";
  const bool general = kind == "daemon" || kind == "device";
  events_.push_back(
      {++last_, seconds, std::move(kind), std::move(tenant), general, std::move(text)});
  if (events_.size() > kMaxEvents) events_.pop_front();
}

void Events::Lost(double seconds, const std::string& problem) {
  if (lost_) return;
  lost_ = true;
  Add(seconds, "daemon", "", "no answer: " + problem);
}

void Events::Compare(double seconds, const InspectReply* before, const InspectReply& now) {
  const bool back = std::exchange(lost_, false);
  if (back) Add(seconds, "daemon", "", "longwired answers again");
  if (before == nullptr) return;
  if (before->daemon().pid() != now.daemon().pid()) {
    Add(seconds, "daemon", "", "longwired " + now.daemon().version() + " was started");
  } else {
    CompareCounters(seconds, *before, now);
  }
  CompareSessions(seconds, *before, now);
  CompareState(seconds, *before, now);
}

void Events::CompareSessions(double seconds, const InspectReply& before, const InspectReply& now) {
  const auto then = ById(before), present = ById(now);
  for (const auto& [id, session] : then) {
    auto found = present.find(id);
    if (found != present.end() && IsSame(*session, *found->second)) continue;
    Add(seconds, "ended", session->tenant(),
        NameOf(*session) + " ended after " + cli::SecondsText(session->seconds()) +
            WhyEnded(*session, now));
  }
  for (const auto& [id, session] : present) {
    auto found = then.find(id);
    if (found != then.end() && IsSame(*session, *found->second)) continue;
    Add(seconds, "opened", session->tenant(), NameOf(*session) + " was opened");
  }
}

// What was refused, and sessions that came and went between two samples.
void Events::CompareCounters(double seconds, const InspectReply& before, const InspectReply& now) {
  using Who = std::pair<std::string, std::string>;
  std::map<Who, const transport::IdentityFigures*> then;
  for (const auto& one : before.identities()) then[{one.tenant(), one.identity()}] = &one;
  std::map<Who, uint64_t> opened;
  const auto known = ById(before);
  for (const Session& session : now.sessions()) {
    if (!known.contains(session.id())) ++opened[{session.tenant(), session.identity()}];
  }
  for (const auto& one : now.identities()) {
    const Who who{one.tenant(), one.identity()};
    auto found = then.find(who);
    const uint64_t refused_before = found == then.end() ? 0 : found->second->refused();
    const uint64_t opened_before = found == then.end() ? 0 : found->second->opened();
    const std::string name = one.identity() + (one.tenant().empty() ? ", who belongs to no tenant"
                                                                    : " (" + one.tenant() + ")");
    if (one.refused() > refused_before) {
      Add(seconds, "refused", one.tenant(),
          Times(one.refused() - refused_before, "session was", "sessions were") + " refused to " +
              name);
    }
    const uint64_t seen = opened[who];
    if (one.opened() > opened_before + seen && one.identity() != "(others)") {
      Add(seconds, "ended", one.tenant(),
          Times(one.opened() - opened_before - seen, "session", "sessions") + " of " + name +
              " opened and ended within a second");
    }
  }
}

void Events::CompareState(double seconds, const InspectReply& before, const InspectReply& now) {
  if (before.daemon().draining() != now.daemon().draining()) {
    Add(seconds, "daemon", "",
        now.daemon().draining() ? "draining: no new sessions are opened"
                                : "new sessions are opened again");
  }
  const std::string& problem = now.daemon().warden_problem();
  if (before.daemon().warden_problem() != problem) {
    Add(seconds, "daemon", "", problem.empty() ? "the warden answers again" : problem);
  }
  std::map<int32_t, bool> cordoned;
  for (const transport::Device& device : before.devices()) {
    cordoned[device.ordinal()] = device.cordoned();
  }
  for (const transport::Device& device : now.devices()) {
    auto found = cordoned.find(device.ordinal());
    if (found == cordoned.end() || found->second == device.cordoned()) continue;
    Add(seconds, "device", "",
        "device " + std::to_string(device.ordinal()) +
            (device.cordoned() ? " was cordoned: it gets no new sessions"
                               : " gets new sessions again"));
  }
}

}  // namespace longwire::web
