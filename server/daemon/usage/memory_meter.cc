#include "server/daemon/usage/memory_meter.h"

#include <algorithm>

namespace longwire::daemon {
namespace {

using keeper::MemoryEventKind;

constexpr double kMicrosecondsPerHour = 3600e6;

}  // namespace

void MemoryMeter::Begin(uint64_t session, uint64_t time) { sessions_[session].begun = time; }

void MemoryMeter::BeginAt(uint64_t session, uint64_t time) {
  auto found = sessions_.find(session);
  if (found == sessions_.end()) return;
  found->second.begun = time;
  for (auto& [device, seat] : found->second.seats) {
    seat.byte_time = 0;
    seat.since = std::max(seat.since, time);
    seat.compared = std::max(seat.compared, time);
  }
}

void MemoryMeter::Stop(uint64_t session, uint64_t time) {
  auto found = sessions_.find(session);
  if (found != sessions_.end()) found->second.stopped = time;
}

MemoryMeter::Seat& MemoryMeter::SeatOf(Meter& session, int32_t device) {
  auto [entry, is_new] = session.seats.try_emplace(device);
  if (is_new) entry->second.since = entry->second.compared = session.begun;
  return entry->second;
}

void MemoryMeter::Advance(const Meter& session, uint64_t time, Seat* seat) {
  const uint64_t until = std::min(time, session.stopped);
  if (until <= seat->since) return;  // or somebody has set the clock back
  seat->byte_time += static_cast<double>(seat->leased) * static_cast<double>(until - seat->since);
  seat->since = until;
}

MemoryMeter::Reading MemoryMeter::Take(uint64_t session, uint64_t now) {
  auto found = sessions_.find(session);
  if (found == sessions_.end()) return {0, true};
  Reading reading{0, found->second.estimated};
  for (auto& [device, seat] : found->second.seats) {
    Advance(found->second, now, &seat);
    reading.byte_hours += seat.byte_time / kMicrosecondsPerHour;
  }
  sessions_.erase(found);
  return reading;
}

void MemoryMeter::Apply(int32_t device, std::span<const keeper::MemoryEvent> events) {
  for (const keeper::MemoryEvent& event : events) {
    auto found = sessions_.find(event.worker);
    if (found == sessions_.end()) continue;
    const auto kind = static_cast<MemoryEventKind>(event.kind);
    const bool more = kind == MemoryEventKind::kLease || kind == MemoryEventKind::kSwapIn;
    // kDrain, kUnused and kGone say of bytes that are returned why they are.
    const bool less = kind == MemoryEventKind::kReturn || kind == MemoryEventKind::kSwapOut;
    if (!more && !less) continue;
    Seat& seat = SeatOf(found->second, device);
    Advance(found->second, event.time, &seat);
    seat.leased =
        more ? seat.leased + event.bytes : seat.leased - std::min(seat.leased, event.bytes);
  }
}

void MemoryMeter::Compare(int32_t device, const Leased& leased, uint64_t now) {
  for (auto& [id, session] : sessions_) {
    auto told = leased.find(id);
    const uint64_t right = told == leased.end() ? 0 : told->second;
    // Of a session that has ended its worker may have returned all after that time.
    if (session.stopped <= now || (right == 0 && !session.seats.contains(device))) continue;
    Seat& seat = SeatOf(session, device);
    Advance(session, now, &seat);
    if (right != seat.leased) {
      const double difference = static_cast<double>(right) - static_cast<double>(seat.leased);
      seat.byte_time += difference / 2 * static_cast<double>(now - std::min(now, seat.compared));
      seat.byte_time = std::max(seat.byte_time, 0.0);
      seat.leased = right;
      session.estimated = true;
    }
    seat.compared = now;
  }
}

}  // namespace longwire::daemon
