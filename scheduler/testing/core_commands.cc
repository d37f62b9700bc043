#include <sstream>
#include <stdexcept>

#include "scheduler/testing/commands.h"
#include "wire/guards.h"

namespace longwire::scheduler::testing {

namespace {

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

PriorityClass ClassOf(const Command& command) {
  return command.Has("latency_critical") ? PriorityClass::kLatencyCritical
                                         : PriorityClass::kBestEffort;
}

// "1/0": session 1 on device 0.
std::pair<SessionId, DeviceId> ParseSeat(const std::string& text) {
  const auto parts = Split(text, '/');
  if (parts.size() != 2) throw std::invalid_argument("'" + text + "' is not SESSION/DEVICE");
  return {ParseNumber(parts[0]), static_cast<DeviceId>(ParseNumber(parts[1]))};
}

Activity ParseActivity(const std::string& text) {
  if (text == "idle") return Activity::kIdle;
  if (text == "queued") return Activity::kQueued;
  if (text == "running") return Activity::kRunning;
  throw std::invalid_argument("'" + text + "' is not idle, queued or running");
}

const char* Name(Activity activity) {
  if (activity == Activity::kIdle) return "idle";
  return activity == Activity::kQueued ? "queued" : "running";
}

SessionInfo ParseSession(const Command& command) {
  SessionInfo info;
  info.id = ParseNumber(command.Word(1));
  info.tenant = command.Text("tenant", "");
  info.priority_class = ClassOf(command);
  info.weight = static_cast<uint32_t>(command.Number("weight", 1));
  info.gang = command.Text("gang", "");
  for (const std::string& device : Split(command.Text("devices", "0"), ',')) {
    info.devices.push_back(static_cast<DeviceId>(ParseNumber(device)));
  }
  return info;
}

std::string LimitsOf(const Decision& decision) {
  if (decision.budget == Budget{} && decision.copy_slice == 0) return "no limits";
  std::ostringstream text;
  text << decision.budget.launches << " launch or " << decision.budget.work.count()
       << "us, copies of " << (decision.copy_slice >> 20) << "MiB";
  return text.str();
}

// The scheduler's options, less what tests/proof has switched off.
Options Guarded(Options options) {
  if (wire::GuardIsOff("complete")) options.complete_after = kForever;
  if (wire::GuardIsOff("max_wait")) options.max_wait = kForever;
  if (wire::GuardIsOff("drain_limit")) options.drain_lengths = 1000;
  if (wire::GuardIsOff("launch_gap")) options.longest_gap = Time{0};
  if (wire::GuardIsOff("least_charge")) options.least_charge = Time{0};
  return options;
}

}  // namespace

CoreCommands::CoreCommands(Replace replace) : replace_(std::move(replace)) {
  Restart(Command("core"));
}

Options CoreCommands::ReadSharing(const Command& command) {
  const std::string name = command.Text("policy", "strict_priority");
  auto policy = replace_ ? replace_(name) : MakePolicy(name);
  if (policy == nullptr) throw std::invalid_argument("there is no such policy");
  policies_.push_back(std::move(policy));
  Options options;
  options.turn_length = command.Span("turn", options.turn_length);
  options.max_wait = command.Span("max_wait", options.max_wait);
  options.linger = command.Span("linger", options.linger);
  options.drain_lengths =
      static_cast<uint32_t>(command.Number("drain_lengths", options.drain_lengths));
  return Guarded(options);
}

void CoreCommands::Restart(const Command& command) {
  const Options options = ReadSharing(command);
  core_ = std::make_unique<Core>(*policies_.back(), options);
  now_ = Time{0};
  told_.clear();
  queued_.clear();
  begins_.clear();
  wide_.clear();
}

std::string CoreCommands::Run(const Command& command) {
  const std::string& verb = command.Word(0);
  std::string output;
  if (verb == "core") {
    Restart(command);
  } else if (verb == "sharing") {
    const Options options = ReadSharing(command);
    output = Tell(SharingChanged{policies_.back().get(), options});
  } else if (verb == "at") {
    output = PassTimeTo(ParseTime(command.Word(1)));
  } else if (verb == "open") {
    const SessionInfo session = ParseSession(command);
    if (session.devices.size() > 1) wide_.insert(session.id);
    output = Tell(SessionOpened{session});
  } else if (verb == "close") {
    output = Tell(SessionClosed{ParseNumber(command.Word(1))});
  } else if (verb == "tenant") {
    const auto weight = static_cast<uint32_t>(command.Number("weight", 1));
    output = Tell(TenantChanged{command.Word(1), ClassOf(command), weight});
  } else if (verb == "join") {
    output = Tell(GangJoined{ParseNumber(command.Word(1)), ParseNumber(command.Word(2))});
  } else if (verb == "gap") {
    const auto [session, device] = ParseSeat(command.Word(1));
    output = Tell(LaunchGapObserved{session, device, ParseTime(command.Word(2))});
  } else if (verb == "show") {
    output = Show();
  } else {
    output = Report(command);
  }
  command.CheckAllUsed();
  return output;
}

std::string CoreCommands::PassTimeTo(Time time) {
  if (time < now_) throw std::invalid_argument("time does not run backwards");
  std::string output;
  for (auto tick = core_->next_tick(); tick && *tick <= time; tick = core_->next_tick()) {
    if (*tick <= now_) throw std::logic_error("next_tick lies in the past");
    now_ = *tick;
    output += Tell(Tick{});
  }
  now_ = time;
  return output;
}

std::string CoreCommands::Tell(const Event& event) {
  const std::vector<Decision> decisions = core_->On(now_, event);
  std::string output = Print(decisions);
  for (const Decision& decision : decisions) output += AnswerClosing(decision);
  return output;
}

std::string CoreCommands::Report(const Command& command) {
  const auto seat = ParseSeat(command.Word(0));
  if (command.Word(1) == "begins") {
    begins_.insert(seat);
    return "";
  }
  const Time used = command.Span("used", Time{0});
  const ActivityReported report{seat.first, seat.second, ParseActivity(command.Word(1)), used};
  queued_.erase(seat);
  if (report.activity == Activity::kQueued && !wide_.contains(seat.first)) queued_[seat] = report;
  return Tell(report);
}

std::string CoreCommands::AnswerClosing(const Decision& decision) {
  const std::pair seat(decision.session, decision.device);
  auto last = queued_.extract(seat);  // what a gate lets through runs, and is reported by its end
  if (decision.open || last.empty()) return "";
  if (begins_.erase(seat) > 0) last.mapped().activity = Activity::kRunning;
  return Tell(last.mapped());
}

std::string CoreCommands::Print(const std::vector<Decision>& decisions) {
  std::ostringstream output;
  for (const Decision& decision : decisions) {
    output << FormatTime(now_) << "  " << decision.session << "/" << decision.device << "  "
           << (decision.open         ? "open"
               : decision.calls != 0 ? "closed, but for one call"
                                     : "closed");
    const auto [at, is_new] = told_.try_emplace({decision.session, decision.device}, decision);
    if (is_new || LimitsOf(at->second) != LimitsOf(decision)) output << ", " << LimitsOf(decision);
    at->second = decision;
    output << "\n";
  }
  return output.str();
}

std::string CoreCommands::Show() const {
  std::ostringstream output;
  const Snapshot snapshot = core_->snapshot();
  for (const DeviceStatus& device : snapshot.devices) {
    output << "device " << device.now.device << ": " << device.now.latency_critical
           << " latency critical, " << device.now.best_effort << " best effort";
    if (device.turns) output << ", turns, " << device.waiting << " waiting";
    for (SessionId session : device.turn) output << ", turn of " << session;
    output << "\n";
  }
  for (const SeatStatus& seat : snapshot.seats) {
    output << "session " << seat.decision.session << "/" << seat.decision.device << ": "
           << Name(seat.activity) << ", " << (seat.decision.open ? "open" : "closed") << ", used "
           << FormatTime(seat.gpu_time) << "\n";
  }
  for (const TenantStatus& tenant : snapshot.tenants) {
    output << "tenant " << tenant.tenant << ": weight " << tenant.weight << ", used "
           << FormatTime(tenant.gpu_time) << ", share " << static_cast<int>(100 * tenant.share)
           << " %\n";
  }
  output << "turns " << snapshot.counters.turns << ", overruns " << snapshot.counters.overruns
         << ", forced " << snapshot.counters.forced << "\n";
  return output.str();
}

}  // namespace longwire::scheduler::testing
