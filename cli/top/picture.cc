#include "cli/top/picture.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace longwire::cli::top {
namespace {

using transport::InspectReply;

// The reply before, if rates can be made from it.
struct Earlier {
  std::map<uint64_t, const transport::Session*> sessions;
  std::map<std::string, double> gpu_seconds;  // by tenant
  double seconds = 0;                         // since then
};

Earlier EarlierOf(const InspectReply* before, const InspectReply& now) {
  Earlier earlier;
  if (before == nullptr || before->daemon().pid() != now.daemon().pid()) return earlier;
  earlier.seconds = now.daemon().uptime_seconds() - before->daemon().uptime_seconds();
  if (earlier.seconds <= 0) return {};
  for (const transport::Session& one : before->sessions()) earlier.sessions[one.id()] = &one;
  for (const transport::TenantFigures& one : before->tenants()) {
    earlier.gpu_seconds[one.name()] = one.gpu_seconds();
  }
  return earlier;
}

// A counter that has become smaller was begun anew.
Rate RateOf(double before, double now, double seconds) {
  if (seconds <= 0 || now < before) return std::nullopt;
  return (now - before) / seconds;
}

std::optional<double> MeanOf(const transport::TimeSum& before, const transport::TimeSum& now) {
  if (now.count() <= before.count()) return std::nullopt;
  return std::max(0.0, now.seconds() - before.seconds()) /
         static_cast<double>(now.count() - before.count());
}

double GpuSeconds(const transport::Session& session) {
  double seconds = 0;
  for (const transport::Seat& seat : session.seats()) seconds += seat.gpu_seconds();
  return seconds;
}

bool Waits(const transport::Seat& seat) { return seat.closed() && seat.busy(); }

SessionRow RowOf(const transport::Session& session, const Earlier& earlier) {
  SessionRow row;
  row.id = session.id();
  row.program = session.program();
  row.program_id = session.program_id();
  row.host = session.client_host();
  row.identity = session.identity();
  row.tenant = session.tenant();
  row.memory = session.leased();
  for (const transport::SessionMemory& memory : session.memory()) row.memory += memory.charged();
  for (const transport::Seat& seat : session.seats()) {
    row.devices.push_back(seat.device());
    row.waits |= Waits(seat);
    if (seat.closed()) row.gate = std::max(row.gate, Gate::kClosed);
    if (seat.stopped()) row.gate = Gate::kStopped;
  }
  std::ranges::sort(row.devices);
  auto found = earlier.sessions.find(session.id());
  if (found == earlier.sessions.end()) return row;
  const transport::Session& before = *found->second;
  auto rate = [&](auto then, auto now) {
    return RateOf(static_cast<double>(then), static_cast<double>(now), earlier.seconds);
  };
  row.gpu = rate(GpuSeconds(before), GpuSeconds(session));
  row.up = rate(before.bytes_up(), session.bytes_up());
  row.down = rate(before.bytes_down(), session.bytes_down());
  // An older server counts no calls of a session.
  if (session.calls() != 0) row.round_trips = rate(before.round_trips(), session.round_trips());
  row.queue = MeanOf(before.launch_queueing(), session.launch_queueing());
  row.start = MeanOf(before.launch_to_start(), session.launch_to_start());
  return row;
}

// The tenants that work on a device with their gate open: whoever waits there waits for them.
std::map<int32_t, std::set<std::string>> WorkersOf(const InspectReply& reply) {
  std::map<int32_t, std::set<std::string>> workers;
  for (const transport::Session& session : reply.sessions()) {
    for (const transport::Seat& seat : session.seats()) {
      if (seat.busy() && !seat.closed()) workers[seat.device()].insert(session.tenant());
    }
  }
  return workers;
}

TenantRow RowOf(const transport::TenantFigures& tenant, const InspectReply& reply,
                const Earlier& earlier) {
  TenantRow row;
  row.name = tenant.name();
  row.sessions = tenant.sessions();
  row.memory = tenant.memory_leased();
  row.memory_limit = tenant.memory_limit();
  if (tenant.share_due() > 0 || tenant.share_had() > 0) {
    row.due = tenant.share_due();
    row.had = tenant.share_had();
  }
  std::set<std::string> held_by;
  auto workers = WorkersOf(reply);
  for (const transport::Session& session : reply.sessions()) {
    if (session.tenant() != tenant.name()) continue;
    bool waits = false;
    for (const transport::Seat& seat : session.seats()) {
      if (!Waits(seat)) continue;
      waits = true;
      held_by.insert(workers[seat.device()].begin(), workers[seat.device()].end());
    }
    row.waiting += waits ? 1 : 0;
  }
  row.held_by.assign(held_by.begin(), held_by.end());
  auto before = earlier.gpu_seconds.find(tenant.name());
  if (before != earlier.gpu_seconds.end()) {
    row.gpu = RateOf(before->second, tenant.gpu_seconds(), earlier.seconds);
  }
  return row;
}

DeviceRow RowOf(const transport::Device& device) {
  return {
      device.ordinal(), device.name(),     device.busy(),     device.leased() + device.charged(),
      device.total(),   device.sessions(), device.cordoned(), device.health()};
}

std::string Lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](char byte) {
    return byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte + 32) : byte;
  });
  return text;
}

// What is not known is below all that is.
double Figure(Column column, const SessionRow& row) {
  switch (column) {
    case Column::kGpu:
      return row.gpu.value_or(-1);
    case Column::kMemory:
      return static_cast<double>(row.memory);
    case Column::kUp:
      return row.up.value_or(-1);
    case Column::kDown:
      return row.down.value_or(-1);
    case Column::kRoundTrips:
      return row.round_trips.value_or(-1);
    case Column::kQueue:
      return row.queue.value_or(-1);
    case Column::kStart:
      return row.start.value_or(-1);
    case Column::kGate:
      return 2 * static_cast<int>(row.gate) + (row.waits ? 1 : 0);
    default:
      return 0;
  }
}

const std::string& Text(Column column, const SessionRow& row) {
  static const std::string kNone;
  switch (column) {
    case Column::kProgram:
      return row.program;
    case Column::kIdentity:
      return row.identity;
    case Column::kTenant:
      return row.tenant;
    case Column::kHost:
      return row.host;
    default:
      return kNone;
  }
}

bool Before(Column column, const SessionRow& one, const SessionRow& other) {
  static const std::vector<int32_t> kNone;
  const bool by_device = column == Column::kDevice;
  auto key = [&](const SessionRow& row) {
    return std::make_tuple(-Figure(column, row), Text(column, row),
                           by_device ? row.devices : kNone);
  };
  return key(one) < key(other);
}

}  // namespace

Picture MakePicture(const std::string& server, const InspectReply* before,
                    const InspectReply& now) {
  const Earlier earlier = EarlierOf(before, now);
  Picture picture;
  picture.server = server;
  picture.version = now.daemon().version();
  picture.host = now.daemon().host();
  picture.uptime = now.daemon().uptime_seconds();
  picture.interval = earlier.seconds;
  picture.draining = now.daemon().draining();
  picture.left_out = now.other_tenants_left_out();
  picture.problem = now.daemon().warden_problem();
  for (const transport::Device& device : now.devices()) picture.devices.push_back(RowOf(device));
  for (const auto& tenant : now.tenants()) {
    picture.tenants.push_back(RowOf(tenant, now, earlier));
  }
  for (const auto& session : now.sessions()) picture.sessions.push_back(RowOf(session, earlier));
  return picture;
}

void Sort(Column column, bool reversed, std::vector<SessionRow>* sessions) {
  std::ranges::sort(*sessions, {}, &SessionRow::id);
  std::ranges::stable_sort(*sessions, [&](const SessionRow& one, const SessionRow& other) {
    if (column == Column::kSession) return reversed ? other.id < one.id : one.id < other.id;
    return reversed ? Before(column, other, one) : Before(column, one, other);
  });
}

void Filter(const std::string& text, std::vector<SessionRow>* sessions) {
  const std::string wanted = Lower(text);
  std::erase_if(*sessions, [&](const SessionRow& row) {
    for (const std::string& name : {std::to_string(row.id), row.program, row.program_id, row.host,
                                    row.identity, row.tenant}) {
      if (Lower(name).find(wanted) != std::string::npos) return false;
    }
    return true;
  });
}

}  // namespace longwire::cli::top
