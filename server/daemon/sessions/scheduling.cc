#include "server/daemon/sessions/scheduling.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <set>
#include <utility>

namespace longwire::daemon {
namespace {

using scheduler::Activity;
using scheduler::Time;

// The interval in which long work is charged and a missed notification of a worker is noticed.
constexpr std::chrono::milliseconds kPollInterval{100};
// Measured on an H200: 1.1 ms requests beside a 21 ms kernel answer in 1.31 ms with 50 µs slices
// and in 2.6 ms with the driver's own (docs/decisions).
constexpr uint32_t kShortSlice = 50;  // µs
// The period over which utilization is measured, and the interval of samples.
constexpr std::chrono::seconds kBusySpan{2};
constexpr std::chrono::milliseconds kSample{500};
// A worker that does not acknowledge for so long was stopped: its thread does nothing else.
constexpr std::chrono::milliseconds kHears{100};
constexpr std::chrono::seconds kSharesSpan{60};
constexpr uint64_t kWake = 0;  // session 0 does not exist

Activity ActivityOf(const gates::DeviceGate& gate) {
  if (gate.running_since.load() != 0) return Activity::kRunning;
  return gate.busy.load() != 0 ? Activity::kQueued : Activity::kIdle;
}

void Watch(int epoll, int descriptor, uint64_t session) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = session;
  epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event);
}

void AddCalls(gates::GatePage& page, std::vector<uint64_t>* counts) {
  for (uint32_t i = 0; i < gates::kMaxCalls; ++i) (*counts)[i] += page.calls(i).load();
}

// Kernels before 5.11 know milliseconds only.
int WaitForEvents(int epoll, std::optional<std::chrono::nanoseconds> timeout,
                  std::span<epoll_event> events) {
  auto most = static_cast<int>(events.size());
  timespec wait{};
  if (timeout) wait = {timeout->count() / 1'000'000'000, timeout->count() % 1'000'000'000};
  int count = epoll_pwait2(epoll, events.data(), most, timeout ? &wait : nullptr, nullptr);
  if (count >= 0 || errno != ENOSYS) return count;
  auto rounded = std::chrono::ceil<std::chrono::milliseconds>(
                     timeout.value_or(std::chrono::nanoseconds(-1'000'000)))
                     .count();
  return epoll_wait(epoll, events.data(), most,
                    static_cast<int>(std::clamp<int64_t>(rounded, -1, INT_MAX)));
}

}  // namespace

Time Scheduling::Now() { return Time(gates::Nanoseconds()); }

Scheduling::Scheduling(const SchedulingOptions& options, std::function<void()> terms_changed)
    : terms_changed_(std::move(terms_changed)),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      options_(options),
      policy_(scheduler::MakePolicy(options.policy)),
      core_(*policy_, options.times),
      ended_calls_(gates::kMaxCalls) {
  Watch(epoll_.get(), wake_.get(), kWake);
  thread_ = std::thread([this] { Loop(); });
}

Scheduling::~Scheduling() { Stop(); }

void Scheduling::Stop() {
  {
    base::MutexLock lock(mutex_);
    ending_ = true;
  }
  eventfd_write(wake_.get(), 1);
  if (thread_.joinable()) thread_.join();
}

std::shared_ptr<gates::GatePage> Scheduling::Open(const scheduler::SessionInfo& session) {
  auto page = gates::GatePage::Create(static_cast<uint32_t>(session.devices.size()));
  if (page == nullptr) return nullptr;
  base::MutexLock lock(mutex_);
  Enter(session, page);
  return page;
}

// What the session used before is shown, and counts for nothing else: the core does not know it.
void Scheduling::Inherit(const scheduler::SessionInfo& session,
                         std::shared_ptr<gates::GatePage> page) {
  page->OpenAll();
  base::MutexLock lock(mutex_);
  for (uint32_t i = 0; i < gates::kMaxCalls; ++i) ended_calls_[i] -= page->calls(i).load();
  gates::AllLatencies& latencies = ended_latencies_[session.tenant];
  for (size_t i = 0; i < latencies.size(); ++i) {
    latencies[i].Subtract(page->Counts(static_cast<gates::Latency>(i)));
  }
  Enter(session, page);
}

void Scheduling::Enter(const scheduler::SessionInfo& session,
                       const std::shared_ptr<gates::GatePage>& page) {
  workers_[session.id] = {session, page};
  for (uint32_t i = 0; i < session.devices.size(); ++i) {
    Device& device = devices_[session.devices[i]];
    Account(device);
    Seat seat;
    seat.session = session.id;
    seat.tenant = session.tenant;
    seat.page = page;
    seat.index = i;
    seat.seen_time = gates::GpuTime(seat.gate(), gates::Nanoseconds());
    seat.gpu_time = seat.core_from = Time(seat.seen_time);
    Sample(device);
    device.seats.push_back(std::move(seat));
  }
  Watch(epoll_.get(), page->bell_descriptor(), session.id);
  Deliver(scheduler::SessionOpened{session});
  TakeTerms();
  WatchSharedDevices();
  eventfd_write(wake_.get(), 1);  // there may be something to wait for now
}

void Scheduling::Close(uint64_t session) {
  base::MutexLock lock(mutex_);
  auto worker = workers_.find(session);
  if (worker == workers_.end()) return;
  gates::GatePage& page = *worker->second.page;
  for (auto& [number, device] : devices_) {
    Account(device);
    std::erase_if(device.seats, [&](const Seat& seat) { return seat.session == session; });
  }
  AddCalls(page, &ended_calls_);
  page.AddLatencies(&ended_latencies_[worker->second.info.tenant]);
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, page.bell_descriptor(), nullptr);
  workers_.erase(worker);
  Deliver(scheduler::SessionClosed{session});
  TakeTerms();
  WatchSharedDevices();
}

// A session that is alone on its devices sends no notifications: no other session's turn depends on
// it. A gang is held back on all its devices together, so where it shares one it has to ask for its
// turns from all, also from those that it has to itself.
void Scheduling::WatchSharedDevices() {
  std::set<std::string> sharing;
  for (const auto& [number, device] : devices_) {
    if (device.seats.size() < 2) continue;
    for (const Seat& seat : device.seats) sharing.insert(GangOf(seat));
  }
  for (auto& [number, device] : devices_) {
    for (Seat& seat : device.seats) {
      const uint32_t tell = options_.enabled && sharing.contains(GangOf(seat)) ? 1 : 0;
      // Enable notifications first, then poll: a change between the two is notified.
      if (seat.gate().tell.exchange(tell) != tell && tell != 0) Report(number, seat);
    }
  }
}

std::string Scheduling::GangOf(const Seat& seat) const {
  auto worker = workers_.find(seat.session);
  const bool joined = worker != workers_.end() && !worker->second.info.gang.empty();
  return joined ? seat.tenant + "\n" + worker->second.info.gang : std::to_string(seat.session);
}

void Scheduling::Poll(uint64_t session) {
  for (auto& [number, device] : devices_) {
    for (Seat& seat : device.seats) {
      if (seat.session == session) Report(number, seat);
    }
  }
}

// A stopped worker loses its turn and gets no other until it responds: it counts as idle.
void Scheduling::CheckWorkers() {
  uint64_t now = gates::Nanoseconds();
  for (auto& [session, worker] : workers_) {
    const bool heard = worker.page->Heard();
    if (heard) worker.unseen_since = 0;
    if (!heard && worker.unseen_since == 0) worker.unseen_since = now;
    const bool answers = heard || Time(now - worker.unseen_since) < kHears;
    if (answers == worker.answers) continue;
    for (auto& [number, device] : devices_) Account(device);  // time up to now counts
    worker.answers = answers;
    Poll(session);
  }
}

bool Scheduling::Answers(uint64_t session) const {
  auto worker = workers_.find(session);
  return worker == workers_.end() || worker->second.answers;
}

void Scheduling::PollAll() {
  CheckWorkers();
  for (auto& [number, device] : devices_) {
    Account(device);
    Sample(device);
    for (Seat& seat : device.seats) {
      if (seat.gate().tell.load() != 0 && seat.gate().busy.load() != 0) Report(number, seat);
    }
  }
}

void Scheduling::Loop() {
  epoll_event events[64];
  while (true) {
    int count = WaitForEvents(epoll_.get(), Timeout(), events);
    bool told = true;
    {
      base::MutexLock lock(mutex_);
      if (ending_) return;
      Hear(std::span(events, static_cast<size_t>(std::max(count, 0))));
      DropEndedProgram();
      if (Now() >= next_poll_) {
        PollAll();
        next_poll_ = Now() + (IsShared() ? kPollInterval : kSample);
      }
      auto due = core_.next_tick();
      if (due && *due <= Now()) Deliver(scheduler::Tick{});
      told = std::exchange(terms_told_, true);
    }
    if (!told && terms_changed_) terms_changed_();
  }
}

void Scheduling::Hear(std::span<const epoll_event> events) {
  for (const epoll_event& event : events) {
    if (event.data.u64 == kWake) {
      eventfd_t rings = 0;
      eventfd_read(wake_.get(), &rings);
      continue;
    }
    auto worker = workers_.find(event.data.u64);
    if (worker == workers_.end()) continue;
    worker->second.page->Answer();
    Poll(worker->first);
  }
}

// True if a session that shares a device has work.
bool Scheduling::IsShared() const {
  return std::ranges::any_of(devices_, [](const auto& entry) {
    return std::ranges::any_of(entry.second.seats, [](const Seat& seat) {
      return seat.gate().tell.load() != 0 && seat.gate().busy.load() != 0;
    });
  });
}

std::optional<std::chrono::nanoseconds> Scheduling::Timeout() {
  base::MutexLock lock(mutex_);
  auto due = core_.next_tick();
  if (workers_.empty() && !due) return std::nullopt;
  Time until = scheduler::kForever;
  if (!workers_.empty()) {
    if (IsShared()) next_poll_ = std::min(next_poll_, Now() + kPollInterval);
    until = next_poll_;
  }
  if (due) until = std::min(until, *due);
  return std::max(until - Now(), Time{0});
}

// Events that a decision causes are delivered when all decisions of the present event are applied:
// an older decision must not overwrite a newer one.
void Scheduling::Deliver(scheduler::Event event) {
  if (!options_.enabled) return;
  undelivered_.push_back(std::move(event));
  if (std::exchange(delivering_, true)) return;
  while (!undelivered_.empty()) {
    scheduler::Event next = std::move(undelivered_.front());
    undelivered_.pop_front();
    for (const scheduler::Decision& decision : core_.On(Now(), next)) Apply(decision);
  }
  delivering_ = false;
}

Scheduling::Seat* Scheduling::FindSeat(uint64_t session, uint32_t device) {
  auto found = devices_.find(device);
  if (found == devices_.end()) return nullptr;
  auto seat = std::ranges::find(found->second.seats, session, &Seat::session);
  return seat == found->second.seats.end() ? nullptr : &*seat;
}

void Scheduling::Apply(const scheduler::Decision& decision) {
  Seat* seat = FindSeat(decision.session, decision.device);
  if (seat == nullptr) return;
  using scheduler::Budget;
  const Budget& budget = decision.budget;
  gates::DeviceGate& gate = seat->gate();
  bool any_work = budget.work == std::chrono::microseconds::max();
  gate.budget_calls = budget.launches == Budget::kAnyNumber ? 0 : budget.launches;
  gate.budget_microseconds = any_work ? 0 : static_cast<uint32_t>(budget.work.count());
  gate.copy_slice_bytes = static_cast<uint32_t>(decision.copy_slice);
  const uint32_t closed = decision.calls == 0 ? gates::kClosed : gates::kOneCall;
  gate.closed = decision.open ? gates::kOpen : closed;
  seat->limited = !decision.open || budget != Budget{};
  SetTimeSlice(*seat);
  // The core needs a report that a closed gate has drained, even if there was no work, and what
  // runs of a turn that is over. The last report may be older than what the worker did since.
  if (!decision.open && decision.calls == 0) Report(decision.device, *seat);
}

void Scheduling::SetTimeSlice(Seat& seat) {
  bool short_slice = options_.short_time_slice && seat.best_effort && seat.limited;
  seat.gate().time_slice = short_slice ? kShortSlice : 0;
  seat.page->RingWorker();
}

void Scheduling::Report(uint32_t number, Seat& seat) {
  Account(devices_[number]);
  Activity activity = Answers(seat.session) ? ActivityOf(seat.gate()) : Activity::kIdle;
  if (!seat.best_effort) ObserveGap(number, seat, activity);
  Deliver(
      scheduler::ActivityReported{seat.session, number, activity, seat.gpu_time - seat.core_from});
}

// Within a request the launches of a latency-critical session follow each other closely: a pause of
// that length is not its end.
void Scheduling::ObserveGap(uint32_t number, Seat& seat, Activity activity) {
  if (activity == Activity::kIdle) {
    if (seat.idle_since == Time{0}) seat.idle_since = Now();
    return;
  }
  Time idle_since = std::exchange(seat.idle_since, Time{0});
  Time gap = Now() - idle_since;
  if (idle_since == Time{0} || gap > options_.times.longest_gap) return;
  // A long gap is forgotten slowly.
  seat.longest_gap = std::max(gap, seat.longest_gap - seat.longest_gap / 16);
  Deliver(scheduler::LaunchGapObserved{seat.session, number, seat.longest_gap});
}

// A worker counts the time in which it had work on the device. Where several had at once they
// shared it: each is charged its part of the time that has passed.
void Scheduling::Account(Device& device) {
  uint64_t now = gates::Nanoseconds();
  std::vector<uint64_t> used;
  uint64_t sum = 0;
  for (Seat& seat : device.seats) {
    uint64_t time = gates::GpuTime(seat.gate(), now);
    // A stopped worker's work may have completed long ago: it does not report that.
    used.push_back(Answers(seat.session) ? time - std::min(time, seat.seen_time) : 0);
    seat.seen_time = std::max(seat.seen_time, time);
    sum += used.back();
  }
  uint64_t passed = now - device.accounted_at;
  device.accounted_at = now;
  double part = sum > passed ? static_cast<double>(passed) / static_cast<double>(sum) : 1.0;
  for (size_t i = 0; i < used.size(); ++i) {
    Time charged(static_cast<int64_t>(static_cast<double>(used[i]) * part));
    device.seats[i].gpu_time += charged;
    gpu_times_[device.seats[i].tenant] += charged;
    device.used += charged;
    device.recent.try_emplace(device.seats[i].tenant, kSharesSpan)
        .first->second.Add(Time(now), charged);
  }
}

void Scheduling::Sample(Device& device) {
  const uint64_t now = gates::Nanoseconds();
  const auto span = static_cast<uint64_t>(std::chrono::nanoseconds(kBusySpan).count());
  device.samples.emplace_back(now, device.used);
  // One sample as old as the period is kept.
  while (device.samples.size() > 2 && device.samples[1].first + span <= now) {
    device.samples.pop_front();
  }
}

std::map<uint32_t, double> Scheduling::BusyDevices() {
  base::MutexLock lock(mutex_);
  std::map<uint32_t, double> busy;
  for (auto& [number, device] : devices_) {
    Account(device);
    Sample(device);
    const auto& [since, used] = device.samples.front();
    const uint64_t passed = device.samples.back().first - since;
    const auto worked = static_cast<double>((device.used - used).count());
    busy[number] = passed == 0 ? 0 : std::min(worked / static_cast<double>(passed), 1.0);
  }
  return busy;
}

std::map<std::string, ShareFigures> Scheduling::Shares() {
  base::MutexLock lock(mutex_);
  std::map<std::string, ShareFigures> shares;
  std::map<std::string, int> devices;
  for (auto& [number, device] : devices_) {
    Account(device);
    std::map<std::string, uint32_t> weights;
    for (const Seat& seat : device.seats) {
      // A session without a tenant of its own has weight 0, which counts as 1.
      if (seat.best_effort) weights[seat.tenant] = std::max(terms_[seat.tenant].weight, 1u);
    }
    double all_weights = 0, all_used = 0;
    for (const auto& [tenant, weight] : weights) all_weights += weight;
    const Time now = Now();
    for (const auto& [tenant, used] : device.recent) {
      if (weights.contains(tenant)) all_used += static_cast<double>(used.Sum(now).count());
    }
    for (const auto& [tenant, weight] : weights) {
      ShareFigures& figures = shares[tenant];
      ++devices[tenant];
      figures.due += weight / all_weights;
      auto used = device.recent.find(tenant);
      if (used == device.recent.end() || all_used <= 0) continue;
      figures.had += static_cast<double>(used->second.Sum(now).count()) / all_used;
    }
  }
  for (auto& [tenant, figures] : shares) {
    figures.due /= devices[tenant];
    figures.had /= devices[tenant];
  }
  return shares;
}

std::vector<SeatFigures> Scheduling::Seats() {
  base::MutexLock lock(mutex_);
  std::vector<SeatFigures> all;
  for (auto& [number, device] : devices_) {
    Account(device);
    for (const Seat& seat : device.seats) {
      const gates::DeviceGate& gate = seat.gate();
      all.push_back({seat.session, number, gate.closed.load() != 0, seat.limited,
                     gate.busy.load() != 0, Answers(seat.session), seat.gpu_time, gate.calls.load(),
                     gate.held.load(), gate.time_slice_groups.load(), gate.time_slice.load()});
    }
  }
  return all;
}

std::vector<uint64_t> Scheduling::CallCounts() {
  base::MutexLock lock(mutex_);
  std::vector<uint64_t> counts = ended_calls_;
  for (auto& [session, worker] : workers_) AddCalls(*worker.page, &counts);
  return counts;
}

}  // namespace longwire::daemon
