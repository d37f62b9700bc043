#include "web/history.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_set>

namespace longwire::web {
namespace {

constexpr double kParts = 65535;   // of a device's memory
constexpr double kGpuParts = 100;  // of a second of GPU time
constexpr double kBusyParts = 255;
constexpr size_t kMaxText = 256;          // of a name; a program's is its user's choice
constexpr size_t kSessionOverhead = 256;  // of a session's entries in the maps, about

// What is there at all is not nothing.
uint16_t PartOf(uint64_t bytes, uint64_t total) {
  if (bytes == 0 || total == 0) return 0;
  const double part = std::round(static_cast<double>(bytes) / static_cast<double>(total) * kParts);
  return static_cast<uint16_t>(std::clamp(part, 1.0, kParts));
}

uint64_t BytesOf(uint16_t part, uint64_t total) {
  return static_cast<uint64_t>(std::llround(part / kParts * static_cast<double>(total)));
}

uint8_t Byte(double value) {
  return static_cast<uint8_t>(std::clamp(std::round(value), 0.0, 255.0));
}

// A whole character is cut, not a part of one.
std::string Cut(const std::string& text) {
  if (text.size() <= kMaxText) return text;
  size_t end = kMaxText;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end) + "…";
}

size_t BytesOf(const KnownSession& session) {
  return kSessionOverhead + session.program.size() + session.host.size() + session.identity.size() +
         session.tenant.size();
}

std::map<std::pair<uint64_t, int32_t>, double> GpuSeconds(const transport::InspectReply* reply) {
  std::map<std::pair<uint64_t, int32_t>, double> seconds;
  if (reply == nullptr) return seconds;
  for (const transport::Session& session : reply->sessions()) {
    for (const transport::Seat& seat : session.seats()) {
      seconds[{session.id(), seat.device()}] = seat.gpu_seconds();
    }
  }
  return seconds;
}

uint64_t SeatNumber(uint32_t session, int32_t device) {
  return (uint64_t{session} << 32) | static_cast<uint32_t>(device);
}

}  // namespace

void History::Add(int64_t second, const transport::InspectReply* before,
                  const transport::InspectReply& now) {
  if (second <= last_) return;
  last_ = second;
  Minute& minute = MinuteOf(second);
  const size_t at = static_cast<size_t>(second - minute.begin);
  minute.known.set(at);
  AddDevices(at, now, &minute);
  AddSessions(at, before, now, &minute);
  MakeRoom();
}

History::Minute& History::MinuteOf(int64_t second) {
  const int64_t begin = second - second % kMinute;
  if (!minutes_.empty() && minutes_.back().begin == begin) return minutes_.back();
  Minute minute;
  minute.begin = begin;
  minute.index = ++minutes_made_;
  if (!minutes_.empty()) {
    // The one before is complete.
    Minute& last = minutes_.back();
    bytes_ -= last.seats.capacity() * sizeof(SeatTrack);
    last.seats.shrink_to_fit();
    bytes_ += last.seats.capacity() * sizeof(SeatTrack);
    minute.seats.reserve(std::min(last.seats.size(), live_.size() * 2));
    bytes_ += minute.seats.capacity() * sizeof(SeatTrack);
  }
  present_seats_.clear();
  minutes_.push_back(std::move(minute));
  const int64_t oldest = begin - static_cast<int64_t>(kHistoryMinutes) * kMinute;
  while (minutes_.front().begin < oldest) ForgetMinute();
  return minutes_.back();
}

void History::AddDevices(size_t at, const transport::InspectReply& now, Minute* minute) {
  for (const transport::Device& device : now.devices()) {
    auto track = std::ranges::find(minute->devices, device.ordinal(), &DeviceTrack::device);
    if (track == minute->devices.end()) {
      minute->devices.emplace_back().device = device.ordinal();
      track = std::prev(minute->devices.end());
      bytes_ += sizeof(DeviceTrack);
    }
    track->total = device.total();
    track->leased[at] = PartOf(device.leased() + device.charged(), device.total());
    track->idle[at] = PartOf(device.idle(), device.total());
    track->busy[at] = Byte(device.busy() * kBusyParts);
  }
}

// What else there is could be forgotten.
bool History::IsFull(size_t more) const { return minutes_.size() == 1 && bytes_ + more > budget_; }

const History::Key* History::KeyOf(const transport::Session& session) {
  KnownSession known{session.id(), Cut(session.program()), Cut(session.client_host()),
                     Cut(session.identity()), session.tenant()};
  auto live = live_.find(session.id());
  if (live != live_.end()) {
    const KnownSession& then = sessions_[live->second].known;
    if (then.program == known.program && then.identity == known.identity &&
        then.tenant == known.tenant && then.host == known.host) {
      return &live->second;
    }
  }
  const size_t size = BytesOf(known);
  if (IsFull(size)) return nullptr;
  const Key key = ++last_key_;
  bytes_ += size;
  sessions_[key].known = std::move(known);
  return &(live_[session.id()] = key);
}

History::SeatTrack* History::SeatOf(Key session, int32_t device, Minute* minute) {
  auto [found, is_new] = present_seats_.try_emplace(SeatNumber(session, device), 0);
  if (!is_new) return &minute->seats[found->second];
  if (IsFull(sizeof(SeatTrack))) {
    present_seats_.erase(found);
    ++left_out_;
    return nullptr;
  }
  found->second = minute->seats.size();
  const size_t capacity = minute->seats.capacity();
  SeatTrack& track = minute->seats.emplace_back();
  bytes_ += (minute->seats.capacity() - capacity) * sizeof(SeatTrack);
  track.session = session;
  track.device = device;
  sessions_[session].last_minute = minute->index;
  return &track;
}

void History::AddSessions(size_t at, const transport::InspectReply* before,
                          const transport::InspectReply& now, Minute* minute) {
  const auto earlier = GpuSeconds(before);
  const double seconds =
      before == nullptr ? 0 : now.daemon().uptime_seconds() - before->daemon().uptime_seconds();
  std::map<int32_t, uint64_t> totals;
  for (const transport::Device& device : now.devices()) totals[device.ordinal()] = device.total();
  std::unordered_set<uint64_t> present;
  for (const transport::Session& session : now.sessions()) {
    present.insert(session.id());
    const Key* key = KeyOf(session);
    if (key == nullptr) {
      ++left_out_;
      continue;
    }
    for (const transport::SessionMemory& memory : session.memory()) {
      SeatTrack* track = SeatOf(*key, memory.device(), minute);
      if (track == nullptr) continue;
      track->memory[at] = PartOf(memory.leased() + memory.charged(), totals[memory.device()]);
    }
    for (const transport::Seat& seat : session.seats()) {
      SeatTrack* track = SeatOf(*key, seat.device(), minute);
      if (track == nullptr) continue;
      track->held[at] = seat.closed() && seat.busy() ? 1 : 0;
      auto then = earlier.find({session.id(), seat.device()});
      if (then == earlier.end() || seconds <= 0) continue;
      track->gpu[at] = Byte((seat.gpu_seconds() - then->second) / seconds * kGpuParts);
    }
  }
  std::erase_if(live_, [&](const auto& one) { return !present.contains(one.first); });
}

void History::ForgetMinute() {
  const Minute& minute = minutes_.front();
  bytes_ -= minute.seats.capacity() * sizeof(SeatTrack);
  bytes_ -= minute.devices.size() * sizeof(DeviceTrack);
  const uint32_t index = minute.index;
  minutes_.pop_front();
  std::unordered_set<Key> live;
  for (const auto& [id, key] : live_) live.insert(key);
  std::erase_if(sessions_, [&](const auto& one) {
    if (one.second.last_minute > index || live.contains(one.first)) return false;
    bytes_ -= BytesOf(one.second.known);
    return true;
  });
}

void History::MakeRoom() {
  while (bytes_ > budget_ && minutes_.size() > 1) ForgetMinute();
}

int64_t History::begin() const {
  if (minutes_.empty()) return 0;
  const Minute& first = minutes_.front();
  for (int at = 0; at < kMinute; ++at) {
    if (first.known[static_cast<size_t>(at)]) return first.begin + at;
  }
  return first.begin;
}

// The column of a second of a minute; nullopt: it is in none.
template <class Columns>
std::optional<size_t> ColumnOf(const Columns& columns, int64_t second) {
  const int64_t seconds = second - columns.begin;
  const int64_t count = static_cast<int64_t>(columns.known.size());
  if (seconds < 0 || seconds >= count * columns.step) return std::nullopt;
  return static_cast<size_t>(seconds / columns.step);
}

void History::ReadDevice(const Minute& minute, const DeviceTrack& track, Columns* columns) {
  columns->total = std::max(columns->total, track.total);
  for (size_t at = 0; at < kMinute; ++at) {
    const auto column = ColumnOf(*columns, minute.begin + static_cast<int64_t>(at));
    if (!minute.known[at] || !column) continue;
    columns->known[*column] = true;
    auto keep_most = [&](std::vector<uint64_t>* values, uint16_t part) {
      (*values)[*column] = std::max((*values)[*column], BytesOf(part, track.total));
    };
    keep_most(&columns->leased, track.leased[at]);
    keep_most(&columns->idle, track.idle[at]);
    float& busy = columns->busy[*column];
    busy = std::max(busy, static_cast<float>(track.busy[at] / kBusyParts));
  }
}

void History::ReadSeat(const Minute& minute, const SeatTrack& seat, uint64_t total,
                       const Columns& columns, Series* series) {
  for (size_t at = 0; at < kMinute; ++at) {
    const auto column = ColumnOf(columns, minute.begin + static_cast<int64_t>(at));
    if (!minute.known[at] || !column) continue;
    uint64_t& memory = series->memory[*column];
    memory = std::max(memory, BytesOf(seat.memory[at], total));
    series->gpu[*column] +=
        static_cast<float>(seat.gpu[at] / kGpuParts / static_cast<double>(columns.step));
    series->held[*column] |= seat.held[at];
  }
}

std::map<History::Key, History::Series> History::Largest(int32_t device, int64_t begin, int64_t end,
                                                         size_t count, const MaySee& may_see,
                                                         size_t* left_out) const {
  std::map<Key, uint64_t> most;
  for (const Minute& minute : minutes_) {
    if (minute.begin + kMinute <= begin || minute.begin >= end) continue;
    const auto track = std::ranges::find(minute.devices, device, &DeviceTrack::device);
    if (track == minute.devices.end()) continue;
    for (const SeatTrack& seat : minute.seats) {
      if (seat.device != device) continue;
      const uint16_t part = std::ranges::max(seat.memory);
      uint64_t& known = most[seat.session];
      known = std::max(known, BytesOf(part, track->total));
    }
  }
  std::vector<std::pair<uint64_t, Key>> order;
  for (const auto& [key, bytes] : most) {
    const auto session = sessions_.find(key);
    if (session == sessions_.end() || !may_see(session->second.known.tenant)) continue;
    order.emplace_back(bytes, key);
  }
  std::ranges::stable_sort(order, std::greater(), [](const auto& one) { return one.first; });
  *left_out = order.size() - std::min(order.size(), count);
  order.resize(std::min(order.size(), count));
  std::map<Key, Series> chosen;
  for (const auto& [bytes, key] : order) {
    chosen[key].session = sessions_.at(key).known;
    chosen[key].most = bytes;
  }
  return chosen;
}

History::Columns History::Read(int32_t device, int64_t begin, int64_t end, int64_t step,
                               size_t sessions, const MaySee& may_see) const {
  Columns columns;
  columns.begin = begin;
  columns.step = std::max<int64_t>(step, 1);
  const int64_t wanted = (end - begin + columns.step - 1) / columns.step;
  const size_t count = static_cast<size_t>(std::max<int64_t>(wanted, 1));
  columns.known.resize(count);
  columns.leased.resize(count);
  columns.idle.resize(count);
  columns.busy.resize(count);
  std::map<Key, Series> chosen = Largest(device, begin, end, sessions, may_see, &columns.left_out);
  for (auto& [key, series] : chosen) {
    series.memory.resize(count);
    series.gpu.resize(count);
    series.held.resize(count);
  }
  for (const Minute& minute : minutes_) {
    if (minute.begin + kMinute <= begin || minute.begin >= end) continue;
    const auto track = std::ranges::find(minute.devices, device, &DeviceTrack::device);
    if (track == minute.devices.end()) continue;
    ReadDevice(minute, *track, &columns);
    for (const SeatTrack& seat : minute.seats) {
      const auto series = chosen.find(seat.session);
      if (seat.device != device || series == chosen.end()) continue;
      ReadSeat(minute, seat, track->total, columns, &series->second);
    }
  }
  for (auto& [key, series] : chosen) columns.sessions.push_back(std::move(series));
  std::ranges::stable_sort(columns.sessions, std::greater(), &Series::most);
  return columns;
}

}  // namespace longwire::web
