#include "server/daemon/sessions/recording.h"

#include "link/transport/codes.h"
#include "longwire/call_ids.h"
#include "server/daemon/sessions/session_table.h"

namespace longwire::daemon {

uint64_t UtcOf(Clock::time_point time) {
  auto ago = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - time).count();
  return UtcNow() - static_cast<uint64_t>(ago);
}

uint64_t CallsOf(gates::GatePage& page, uint64_t* round_trips) {
  uint64_t all = 0;
  *round_trips = 0;
  for (uint32_t number = 0; number < gates::kMaxCalls; ++number) {
    const uint64_t count = page.calls(number).load();
    const auto id = static_cast<CallId>(number);
    if (count == 0 || CallName(id) == nullptr) continue;
    all += count;
    if (CallKind(id) == CallKindValue::kAfterReply) *round_trips += count;
  }
  return all;
}

UsageRecord RecordOfLost(uint64_t session, const SessionRecord& record) {
  UsageRecord usage;
  usage.session = session;
  usage.identity = record.identity;
  usage.tenant = record.tenant;
  usage.program = record.program;
  usage.program_id = record.program_id.value_or("");
  usage.host = record.host;
  usage.peer = record.address;
  usage.pid = record.pid;
  usage.opened = UtcOf(Clock::time_point(std::chrono::nanoseconds(record.opened)));
  usage.ended = UtcNow();
  usage.code = static_cast<uint32_t>(transport::kLaunchFailed);
  return usage;
}

UsageRecord SessionTable::RecordOf(ServerSession& session, const transport::Closed& closed) {
  const ClientDescription& client = session.client();
  UsageRecord usage;
  usage.session = session.id();
  usage.identity = client.peer.identity;
  usage.tenant = client.peer.tenant->name();
  usage.program = client.program;
  usage.program_id = client.program_id;
  usage.host = client.host;
  usage.peer = client.peer.address;
  usage.pid = client.pid;
  usage.opened = UtcOf(session.opened());
  usage.ended = UtcNow();
  usage.bytes_up = session.bytes_up();
  usage.bytes_down = session.bytes_down();
  usage.code = closed.code;
  usage.reason = closed.sentence;
  for (const warden::KeeperProcess& keeper : session.worker().keepers) {
    usage.devices.push_back(keeper.device);
  }
  double gpu_seconds = 0;
  for (const SeatFigures& seat : scheduling_->Seats()) {
    if (seat.session != session.id()) continue;
    gpu_seconds += std::chrono::duration<double>(seat.gpu_time).count();
  }
  usage.gpu_seconds = gpu_seconds;
  uint64_t round_trips = 0;
  if (session.gates() != nullptr) usage.calls = CallsOf(*session.gates(), &round_trips);
  return usage;
}

UsageLog::Source SessionTable::UsageSource() {
  UsageLog::Source source;
  source.events = [this](int32_t device, uint64_t after) {
    return warden_->GetEvents(device, after);
  };
  source.leased = [this]() -> std::optional<std::map<int32_t, MemoryMeter::Leased>> {
    std::string sentence;
    auto stats = warden_->GetStats(&sentence);
    if (!stats) return std::nullopt;
    std::map<int32_t, MemoryMeter::Leased> leased;
    for (const warden::SessionStats& seat : stats->sessions) {
      if (seat.session != 0) leased[seat.device][seat.session] += seat.leased;
    }
    return leased;
  };
  return source;
}

}  // namespace longwire::daemon
