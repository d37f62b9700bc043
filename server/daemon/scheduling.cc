#include "server/daemon/scheduling.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <utility>

namespace longwire::daemon {
namespace {

using scheduler::Activity;
using scheduler::PriorityClass;
using scheduler::Time;

// Long work is charged, and a worker's missed word noticed, while it lasts.
constexpr std::chrono::milliseconds kLook{100};
// Measured on an H200: 1.1 ms requests beside a 21 ms kernel answer in 1.31 ms with 50 µs slices
// and in 2.6 ms with the driver's own (docs/decisions).
constexpr uint32_t kShortSlice = 50;  // µs
constexpr uint64_t kWake = 0;         // session 0 is nobody's

Time Now() { return Time(gates::Nanoseconds()); }

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

Scheduling::Scheduling(const SchedulingOptions& options)
    : options_(options),
      policy_(scheduler::MakePolicy(options.policy)),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      core_(*policy_, options.times),
      ended_calls_(gates::kMaxCalls) {
  Watch(epoll_.get(), wake_.get(), kWake);
  thread_ = std::thread([this] { Loop(); });
}

Scheduling::~Scheduling() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  eventfd_write(wake_.get(), 1);
  thread_.join();
}

std::shared_ptr<gates::GatePage> Scheduling::Open(const scheduler::SessionInfo& session) {
  auto page = gates::GatePage::Create(static_cast<uint32_t>(session.devices.size()));
  if (page == nullptr) return nullptr;
  std::lock_guard lock(mutex_);
  pages_[session.id] = page;
  bool best_effort = session.priority_class == PriorityClass::kBestEffort;
  for (uint32_t i = 0; i < session.devices.size(); ++i) {
    Device& device = devices_[session.devices[i]];
    Account(device);
    Seat seat;
    seat.session = session.id;
    seat.tenant = session.tenant;
    seat.best_effort = best_effort;
    seat.page = page;
    seat.index = i;
    device.seats.push_back(std::move(seat));
  }
  Watch(epoll_.get(), page->bell_descriptor(), session.id);
  Tell(scheduler::SessionOpened{session});
  WatchSharedDevices();
  eventfd_write(wake_.get(), 1);  // there may be something to wait for now
  return page;
}

void Scheduling::Close(uint64_t session) {
  std::lock_guard lock(mutex_);
  auto page = pages_.find(session);
  if (page == pages_.end()) return;
  for (auto& [number, device] : devices_) {
    Account(device);
    std::erase_if(device.seats, [&](const Seat& seat) { return seat.session == session; });
  }
  AddCalls(*page->second, &ended_calls_);
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, page->second->bell_descriptor(), nullptr);
  pages_.erase(page);
  Tell(scheduler::SessionClosed{session});
  WatchSharedDevices();
}

void Scheduling::ChangeTenant(const std::string& tenant, PriorityClass priority_class,
                              uint32_t weight) {
  std::lock_guard lock(mutex_);
  for (auto& [number, device] : devices_) {
    for (Seat& seat : device.seats) {
      if (seat.tenant == tenant) seat.best_effort = priority_class == PriorityClass::kBestEffort;
    }
  }
  Tell(scheduler::TenantChanged{tenant, priority_class, weight});
  eventfd_write(wake_.get(), 1);
}

// A session that is alone on its devices rings no bell: nobody's turn depends on it.
void Scheduling::WatchSharedDevices() {
  for (auto& [number, device] : devices_) {
    uint32_t tell = options_.enabled && device.seats.size() > 1 ? 1 : 0;
    for (Seat& seat : device.seats) {
      // First asked to tell, then looked at: a change between the two is told.
      if (seat.gate().tell.exchange(tell) != tell && tell != 0) Report(number, seat);
    }
  }
}

void Scheduling::Look(uint64_t session) {
  for (auto& [number, device] : devices_) {
    for (Seat& seat : device.seats) {
      if (seat.session == session) Report(number, seat);
    }
  }
}

void Scheduling::LookAtAll() {
  for (auto& [number, device] : devices_) {
    Account(device);
    for (Seat& seat : device.seats) {
      if (seat.gate().tell.load() != 0 && seat.gate().busy.load() != 0) Report(number, seat);
    }
  }
}

void Scheduling::Loop() {
  epoll_event events[64];
  while (true) {
    int count = WaitForEvents(epoll_.get(), Timeout(), events);
    std::lock_guard lock(mutex_);
    if (ending_) return;
    for (int i = 0; i < count; ++i) {
      if (events[i].data.u64 == kWake) {
        eventfd_t rings = 0;
        eventfd_read(wake_.get(), &rings);
        continue;
      }
      auto page = pages_.find(events[i].data.u64);
      if (page == pages_.end()) continue;
      page->second->Answer();
      Look(page->first);
    }
    if (Now() >= next_look_) {
      LookAtAll();
      next_look_ = Now() + kLook;
    }
    auto due = core_.next_tick();
    if (due && *due <= Now()) Tell(scheduler::Tick{});
  }
}

std::optional<std::chrono::nanoseconds> Scheduling::Timeout() {
  std::lock_guard lock(mutex_);
  bool shared = std::ranges::any_of(devices_, [](const auto& entry) {
    return std::ranges::any_of(entry.second.seats, [](const Seat& seat) {
      return seat.gate().tell.load() != 0 && seat.gate().busy.load() != 0;
    });
  });
  auto due = core_.next_tick();
  if (!shared && !due) return std::nullopt;
  Time until = shared ? next_look_ : scheduler::kForever;
  if (due) until = std::min(until, *due);
  return std::max(until - Now(), Time{0});
}

// What a decision causes is told when all decisions of its event are applied: an older decision
// must not be written over a newer one.
void Scheduling::Tell(scheduler::Event event) {
  if (!options_.enabled) return;
  untold_.push_back(std::move(event));
  if (std::exchange(telling_, true)) return;
  while (!untold_.empty()) {
    scheduler::Event next = std::move(untold_.front());
    untold_.pop_front();
    for (const scheduler::Decision& decision : core_.On(Now(), next)) Apply(decision);
  }
  telling_ = false;
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
  bool was_closed = gate.closed.exchange(decision.open ? 0 : 1) != 0;
  seat->limited = !decision.open || budget != Budget{};
  bool short_slice = options_.short_time_slice && seat->best_effort && seat->limited;
  gate.time_slice = short_slice ? kShortSlice : 0;
  seat->page->RingWorker();
  // The core wants to hear that a closed gate has nothing behind it, also if there never was.
  if (!decision.open && !was_closed && ActivityOf(gate) != Activity::kRunning) {
    Report(decision.device, *seat);
  }
}

void Scheduling::Report(uint32_t number, Seat& seat) {
  Account(devices_[number]);
  Activity activity = ActivityOf(seat.gate());
  if (!seat.best_effort) ObserveGap(number, seat, activity);
  Tell(scheduler::ActivityReported{seat.session, number, activity, seat.gpu_time});
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
  // Forgets a long one slowly.
  seat.longest_gap = std::max(gap, seat.longest_gap - seat.longest_gap / 16);
  Tell(scheduler::LaunchGapObserved{seat.session, number, seat.longest_gap});
}

// A worker counts the time in which it had work on the device. Where several had at once they
// shared it: each is charged its part of the time that has passed.
void Scheduling::Account(Device& device) {
  uint64_t now = gates::Nanoseconds();
  std::vector<uint64_t> used;
  uint64_t sum = 0;
  for (Seat& seat : device.seats) {
    uint64_t time = gates::GpuTime(seat.gate(), now);
    used.push_back(time - std::min(time, seat.seen_time));
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
  }
}

std::vector<SeatFigures> Scheduling::Seats() {
  std::lock_guard lock(mutex_);
  std::vector<SeatFigures> all;
  for (auto& [number, device] : devices_) {
    Account(device);
    for (const Seat& seat : device.seats) {
      const gates::DeviceGate& gate = seat.gate();
      all.push_back({seat.session, number, gate.closed.load() != 0, seat.limited,
                     gate.busy.load() != 0, seat.gpu_time, gate.calls.load(), gate.held.load(),
                     gate.time_slice_groups.load()});
    }
  }
  return all;
}

scheduler::Counters Scheduling::counters() {
  std::lock_guard lock(mutex_);
  return core_.snapshot().counters;
}

std::map<uint32_t, double> Scheduling::BusyDevices() {
  std::lock_guard lock(mutex_);
  std::map<uint32_t, double> busy;
  for (const scheduler::DeviceStatus& device : core_.snapshot().devices) {
    busy[device.now.device] = device.busy;
  }
  return busy;
}

std::vector<uint64_t> Scheduling::CallCounts() {
  std::lock_guard lock(mutex_);
  std::vector<uint64_t> counts = ended_calls_;
  for (auto& [session, page] : pages_) AddCalls(*page, &counts);
  return counts;
}

std::map<std::string, std::chrono::nanoseconds> Scheduling::GpuTimes() {
  std::lock_guard lock(mutex_);
  for (auto& [number, device] : devices_) Account(device);
  return gpu_times_;
}

}  // namespace longwire::daemon
