#include "scheduler/simulate/pool_simulation.h"

#include <algorithm>
#include <array>
#include <chrono>

namespace longwire::scheduler::simulate {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;
constexpr uint64_t kDeviceBytes = 80 * kGiB;
constexpr Time kSample = std::chrono::seconds(10);
// As the placer's: changes that come together are looked at together, some at a time.
constexpr Time kGather = std::chrono::milliseconds(2);
constexpr size_t kPlacements = 20;
constexpr uint32_t kWide = 4;  // devices that a program wants together

// What programs ask for: how often, how many devices, bytes on each.
struct Kind {
  double part;
  uint32_t devices;
  uint64_t least, most;
};
constexpr std::array<Kind, 5> kKinds = {
    {{0.45, 1, 4, 20}, {0.30, 1, 20, 80}, {0.12, 2, 40, 80}, {0.09, 4, 80, 80}, {0.04, 8, 80, 80}}};

double MeanBytes(uint32_t devices) {
  double sum = 0;
  for (const Kind& kind : kKinds) {
    const auto bytes = static_cast<double>((kind.least + kind.most) * kGiB) / 2;
    sum += kind.part * std::min(kind.devices, devices) * bytes;
  }
  return sum;
}

double Percentile(std::vector<double>* values, double part) {
  if (values->empty()) return 0;
  const auto place = static_cast<size_t>(part * static_cast<double>(values->size() - 1));
  std::nth_element(values->begin(), values->begin() + static_cast<ptrdiff_t>(place), values->end());
  return (*values)[place];
}

double Seconds(Time time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

PoolSimulation::PoolSimulation(const PoolOptions& options)
    : options_(options), random_(options.seed), planner_(options.policy) {
  for (uint32_t i = 0; i < options.hosts; ++i) {
    pool::HostState& host = hosts_.emplace_back();
    host.name = "gpu" + std::to_string(i);
    host.labels = {{"gpu", i % 4 == 0 ? "h200" : "h100"}, {"zone", i % 2 == 0 ? "a" : "b"}};
    host.sessions_limit = 256;
    for (uint32_t k = 0; k < options.devices; ++k) {
      pool::DeviceState& device = host.devices.emplace_back();
      device.ordinal = static_cast<int32_t>(k);
      device.total = kDeviceBytes;
    }
    by_name_[host.name] = i;
  }
}

PoolSimulation::Asking PoolSimulation::NewProgram(Time now) {
  Asking asking;
  double part = random_.Unit();
  const Kind* kind = &kKinds.back();
  for (const Kind& one : kKinds) {
    if (part < one.part) {
      kind = &one;
      break;
    }
    part -= one.part;
  }
  asking.wish.number = std::to_string(asked_);
  asking.wish.tenant = "tenant-" + std::to_string(random_.Below(options_.tenants));
  asking.wish.devices = std::min(kind->devices, options_.devices);
  asking.wish.bytes = random_.Between(kind->least, kind->most) * kGiB;
  if (random_.Below(10) == 0) asking.wish.labels = {{"zone", "a"}};
  asking.wish.priority = random_.Below(10) == 0 ? 1 : 0;
  asking.wish.age = ++asked_;
  asking.wish.wait = true;
  asking.since = now;
  asking.length = random_.Exponential(options_.mean_session);
  return asking;
}

void PoolSimulation::End(const Running& session) {
  ++ended_;
  pool::HostState& host = hosts_[session.host];
  --host.sessions;
  for (int32_t device : session.devices) {
    pool::DeviceState& of = host.devices[static_cast<size_t>(device)];
    of.promised -= session.bytes;
    --of.sessions;
  }
}

void PoolSimulation::Start(const Asking& asking, const pool::Decision& decision, Time now) {
  const size_t host = by_name_.at(decision.host);
  pool::Take(asking.wish, decision.devices, &hosts_[host]);
  waits_.push_back(Seconds(now - asking.since));
  endings_.push({now + asking.length, {host, decision.devices, decision.bytes}});
  ++placed_;
}

void PoolSimulation::Plan(Time now) {
  while (!asking_.empty()) {
    std::vector<pool::Wish> wishes;
    for (const Asking& one : asking_) wishes.push_back(one.wish);
    const auto began = std::chrono::steady_clock::now();
    const auto decisions = planner_.Plan(hosts_, wishes, kPlacements);
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - began;
    plans_.push_back(took.count());
    std::vector<bool> gone(asking_.size());
    size_t placed = 0;
    for (const pool::Decision& decision : decisions) {
      if (decision.outcome != pool::Outcome::kPlaced) continue;
      Start(asking_[decision.wish], decision, now);
      gone[decision.wish] = true;
      ++placed;
    }
    if (placed != 0) ++placings_;
    size_t index = 0;
    std::erase_if(asking_, [&](const Asking&) { return gone[index++]; });
    if (placed < kPlacements) return;
  }
}

void PoolSimulation::Sample() {
  double used = 0, free = 0, reachable = 0;
  for (const pool::HostState& host : hosts_) {
    uint32_t whole = 0;
    for (const pool::DeviceState& device : host.devices) {
      used += static_cast<double>(device.promised) / static_cast<double>(device.total);
      whole += device.promised == 0 ? 1 : 0;
    }
    free += whole;
    reachable += whole / kWide * kWide;
  }
  used_ += used / static_cast<double>(options_.hosts) / options_.devices;
  stranded_ += free == 0 ? 0 : 1 - reachable / free;
  ++samples_;
}

PoolResult PoolSimulation::Run(Time until) {
  const double bytes = static_cast<double>(kDeviceBytes) * options_.hosts * options_.devices;
  const double sessions = options_.load * bytes / MeanBytes(options_.devices);
  const Time pause =
      Time(static_cast<int64_t>(static_cast<double>(options_.mean_session.count()) / sessions));
  Time arrival = random_.Exponential(pause), sample = kSample;
  for (Time now{0}; now < until;) {
    Time next = std::min({arrival, sample, until});
    if (!endings_.empty()) next = std::min(next, endings_.top().first);
    now = next;
    bool changed = false;
    // All that comes within the time in which the placer gathers.
    for (const Time end = now + kGather; !endings_.empty() && endings_.top().first <= end;) {
      End(endings_.top().second);
      endings_.pop();
      changed = true;
    }
    for (; arrival <= now + kGather; arrival += random_.Exponential(pause)) {
      asking_.push_back(NewProgram(now));
      changed = true;
    }
    if (changed) Plan(now + kGather);
    if (sample <= now) {
      Sample();
      sample += kSample;
    }
  }
  return Summarize(until);
}

PoolResult PoolSimulation::Summarize(Time until) {
  PoolResult result;
  result.asked = asked_;
  result.placed = placed_;
  result.waiting = asking_.size();
  result.wait_p50 = Percentile(&waits_, 0.5);
  result.wait_p99 = Percentile(&waits_, 0.99);
  result.plan_p50 = Percentile(&plans_, 0.5);
  result.plan_p99 = Percentile(&plans_, 0.99);
  if (samples_ != 0) result.used = used_ / static_cast<double>(samples_);
  if (samples_ != 0) result.stranded = stranded_ / static_cast<double>(samples_);
  const double seconds = Seconds(until), loads = options_.hosts / 2.0;
  const auto asked = static_cast<double>(asked_), placed = static_cast<double>(placed_);
  const auto ended = static_cast<double>(ended_), placings = static_cast<double>(placings_);
  // The request; those who are placed together; opened, answer taken away; given back.
  result.transactions = (asked + placings + 2 * placed + ended) / seconds + loads;
  // Deleting counts as writing: the request with an older answer; request, answer, claim, owner of
  // each that is placed and a capacity or more; claim; answer; claim, owner and capacity.
  result.writes = (2 * asked + 5 * placed + 2 * placed + 3 * ended) / seconds + loads;
  result.watched = result.writes;
  return result;
}

}  // namespace longwire::scheduler::simulate
