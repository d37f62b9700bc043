#include "scheduler/simulate/session.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace longwire::scheduler::simulate {

namespace {

constexpr Time kRepeatReport = std::chrono::milliseconds(100);
constexpr uint32_t kMaxInFlight = 16;
constexpr Time kOpening = std::chrono::microseconds(100);

}  // namespace

SessionInfo SimulatedSession::Info() const {
  SessionInfo info;
  info.id = id_;
  info.tenant = profile_.tenant;
  info.priority_class = profile_.priority_class;
  info.weight = profile_.weight;
  info.devices = {profile_.device};
  return info;
}

Time SimulatedSession::Think(Time now) {
  Time mean = profile_.think;
  if (profile_.daily) {
    constexpr double kDay = 24 * 3600e9;
    const double angle = 2 * std::numbers::pi * static_cast<double>(now.count()) / kDay;
    mean = Time(static_cast<int64_t>(static_cast<double>(mean.count()) * (2 - std::cos(angle))));
  }
  return profile_.regular ? mean : random_.Exponential(mean);
}

Appointment SimulatedSession::Begin() {
  // When all have opened, and not all at once: each somewhere within its first thought.
  return {Later::kRequest,
          kOpening + Time(static_cast<int64_t>(random_.Unit() *
                                               static_cast<double>(profile_.think.count())))};
}

Appointment SimulatedSession::OnRequest(Time now) {
  began_ = now;
  alone_ = Time{0};
  to_launch_ = profile_.kernels;
  OnLaunch(now);
  return {};
}

void SimulatedSession::OnLaunch(Time now) {
  const uint32_t launched = profile_.gap > Time{0} ? 1 : to_launch_;
  to_launch_ -= launched;
  queued_ += launched;
  Issue(now);
}

void SimulatedSession::OnDecision(Time now, const Decision& decision) {
  const bool closes = gate_.open && !decision.open;
  gate_ = decision;
  Issue(now);
  // A closing is answered even if nothing changes by it; while something runs, by its end.
  owes_report_ |= closes && in_flight_ == 0;
}

void SimulatedSession::WatchGate(Time now) {
  if (!gate_.open && queued_ > 0) {
    starves_since_ = std::min(starves_since_, now);
  } else if (starves_since_ != kForever) {
    longest_starved_ = std::max(longest_starved_, now - starves_since_);
    starves_since_ = kForever;
  }
}

void SimulatedSession::Issue(Time now) {
  WatchGate(now);
  if (!gate_.open) return;
  const auto by_work = static_cast<uint64_t>(
      std::ceil(std::chrono::duration<double>(gate_.budget.work) /
                std::chrono::duration<double>(std::max(profile_.kernel, Time{1}))));
  const auto limit = static_cast<uint32_t>(
      std::min<uint64_t>(kMaxInFlight, std::max<uint64_t>(gate_.budget.launches, by_work)));
  const uint32_t issued = std::min(queued_, limit - std::min(limit, in_flight_));
  queued_ -= issued;
  in_flight_ += issued;
  if (in_flight_ > 0 && !runs_) StartKernel(now);
}

void SimulatedSession::StartKernel(Time now) {
  kernel_ = profile_.varied ? random_.Exponential(profile_.kernel) : profile_.kernel;
  kernel_ = std::max(kernel_, Time{1000});
  runs_ = true;
  gpu_.Start(now, static_cast<uint32_t>(id_), best_effort(), kernel_);
}

Appointment SimulatedSession::OnKernelEnd(Time now) {
  gpu_time_ += kernel_;
  alone_ += kernel_;
  runs_ = false;
  if (--in_flight_ > 0) StartKernel(now);
  Issue(now);
  if (in_flight_ + queued_ > 0) return {};
  if (to_launch_ == 0) return EndRequest(now);
  alone_ += profile_.gap;
  return {Later::kLaunch, now + profile_.gap};
}

Appointment SimulatedSession::EndRequest(Time now) {
  ++requests_;
  if (!best_effort()) {
    waits_.push_back(
        static_cast<float>(static_cast<double>((now - began_ - alone_).count()) / 1e3));
  }
  if (profile_.think == Time{0}) return OnRequest(now);
  return {Later::kRequest, now + Think(now)};
}

Activity SimulatedSession::activity() const {
  if (in_flight_ > 0) return Activity::kRunning;
  return queued_ > 0 ? Activity::kQueued : Activity::kIdle;
}

std::optional<ActivityReported> SimulatedSession::TakeReport(Time now) {
  const Activity current = activity();
  const bool repeats = current == Activity::kRunning && now - told_at_ >= kRepeatReport;
  if (current == told_ && !owes_report_ && !repeats) return std::nullopt;
  told_ = current;
  told_at_ = now;
  owes_report_ = false;
  return ActivityReported{id_, profile_.device, current, gpu_time_};
}

}  // namespace longwire::scheduler::simulate
