#include "server/daemon/sessions/view.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>

#include "base/printable.h"
#include "link/transport/codes.h"
#include "server/daemon/settings/safe_limits.h"
#include "wire/view.h"

namespace longwire::daemon {
namespace {

// NVIDIA's library is a link to a file with its release behind the name; the software device is of
// this release of ours.
std::string ReleaseOf(const std::string& driver) {
  constexpr std::string_view kName = "libcuda.so.";
  std::filesystem::path path(driver);
  if (path.parent_path().filename() == "softgpu") return LONGWIRE_VERSION;
  std::error_code error;
  std::string file = std::filesystem::canonical(path, error).filename();
  bool has_release =
      !error && file.starts_with(kName) && file.find('.', kName.size()) < file.size();
  return has_release ? file.substr(kName.size()) : "";
}

std::shared_ptr<ServerSession> SessionOf(
    const wire::ViewRequest& program, const Peer& peer,
    const std::vector<std::shared_ptr<ServerSession>>& sessions) {
  for (const auto& session : sessions) {
    const ClientDescription& client = session->client();
    if (client.pid == program.pid && client.host == program.host &&
        client.peer.tenant->name() == peer.tenant->name()) {
      return session;
    }
  }
  return nullptr;
}

// As the keeper answers a session of the tenant that asks for free and total memory, but with what
// sessions keep free as they said it last.
void FillMemory(const warden::DeviceStats& device, const warden::Stats& stats,
                const config::Tenant& tenant, uint64_t limit, wire::ViewedDevice* viewed) {
  uint64_t charged = 0, reserved = 0, idle = 0;
  for (const warden::TenantStats& ledger : stats.tenants) {
    if (ledger.tenant == tenant.name()) {
      charged = ledger.leased;
    } else {
      reserved += ledger.reserved - std::min(ledger.reserved, ledger.leased);
    }
  }
  for (const warden::SessionStats& session : stats.sessions) {
    if (session.device == device.device) idle += std::min(session.idle, session.leased);
  }
  viewed->memory_total = std::min(device.total, limit);
  uint64_t usable = std::min(viewed->memory_total, device.lendable);
  viewed->memory_reserved = viewed->memory_total - usable;
  uint64_t free = device.lendable - std::min(device.lendable, device.leased + reserved) + idle;
  viewed->memory_free = std::min({free, limit - std::min(limit, charged), usable});
}

void FillProcesses(const warden::DeviceStats& device, const warden::Stats& stats, const Peer& peer,
                   const wire::ViewRequest& program,
                   const std::vector<std::shared_ptr<ServerSession>>& sessions,
                   wire::ViewedDevice* viewed) {
  std::map<uint64_t, uint64_t> leased;
  for (const warden::SessionStats& seat : stats.sessions) {
    if (seat.device == device.device) leased[seat.session] += seat.leased;
  }
  for (const auto& session : sessions) {
    const ClientDescription& client = session->client();
    auto seat = leased.find(session->id());
    // Numbers of processes mean something on their own host only.
    if (seat == leased.end() || client.host != program.host ||
        client.peer.tenant->name() != peer.tenant->name() ||
        viewed->processes.size() == wire::kMaxViewedProcesses) {
      continue;
    }
    viewed->processes.push_back({client.pid, seat->second, client.program});
  }
}

// The driver's ordinals as indices of devices in the answer; others are left out.
std::vector<uint32_t> IndicesOf(const std::vector<int32_t>& devices,
                                const std::vector<int32_t>& viewed) {
  std::vector<uint32_t> indices;
  for (size_t index = 0; index < viewed.size(); ++index) {
    if (std::ranges::count(devices, viewed[index]) != 0) {
      indices.push_back(static_cast<uint32_t>(index));
    }
  }
  return indices;
}

void FillLinks(const keeper::DeviceFacts& facts, const std::vector<int32_t>& ordinals,
               wire::ViewedDevice* viewed) {
  viewed->peers = IndicesOf(facts.peers, ordinals);
  viewed->atomic_peers = IndicesOf(facts.atomic_peers, ordinals);
  for (const keeper::DeviceLink& link : facts.links) {
    if (viewed->links.size() == wire::kMaxViewedLinks) break;
    viewed->links.push_back(
        {link.number, link.version, link.capabilities, link.remote_type, link.remote});
  }
}

// In the form of the version that the program is answered in, where that is known.
wire::ViewReply Refuse(std::string sentence, uint32_t version = wire::SpokenVersions().newest) {
  wire::ViewReply reply;
  reply.protocol = version;
  reply.code = transport::kNoDevice;
  reply.sentence = std::move(sentence);
  return reply;
}

wire::ViewReply View(SessionTable& table, const Peer& peer, std::span<const std::byte> bytes) {
  if (peer.refused()) return Refuse(peer.refusal);
  wire::ViewRequest program;
  wire::Reader reader(bytes);
  if (program.Decode(reader) != wire::WireResult::kOk) {
    return Refuse(
        "the question cannot be read; client and server are probably of different "
        "versions");
  }
  program.host = base::Printable(program.host);  // as sessions have it
  const wire::VersionRange ours = wire::SpokenVersions();
  const uint32_t version = wire::NewestCommon(program.versions, ours);
  if (version == 0) {
    return Refuse(wire::RefusalOf({"the client", wire::kUpgradeClient, program.versions},
                                  {"this server", wire::kUpgradeServer, ours}));
  }
  std::string sentence;
  auto stats = table.warden().GetStats(&sentence);
  if (!stats) return Refuse(sentence, version);
  std::vector<std::shared_ptr<ServerSession>> sessions = table.List();
  std::vector<int32_t> ordinals;
  if (auto own = SessionOf(program, peer, sessions)) {
    for (const warden::KeeperProcess& keeper : own->worker().keepers) {
      ordinals.push_back(keeper.device);
    }
  } else {
    std::vector<std::string> environment;
    if (!program.devices.empty()) {
      environment.push_back(std::string(kDevicesVariable) + "=" + program.devices);
    }
    ordinals = table.ForecastDevices(*peer.tenant, environment, *stats, &sentence);
    if (ordinals.empty()) return Refuse(sentence, version);
  }
  std::erase_if(ordinals, [&](int32_t ordinal) {
    return std::ranges::count(stats->devices, ordinal, &warden::DeviceStats::device) == 0;
  });
  wire::ViewReply reply;
  reply.protocol = version;
  reply.driver_release = ReleaseOf(stats->driver);
  std::map<uint32_t, double> busy = table.scheduling().BusyDevices();
  for (int32_t ordinal : ordinals) {
    auto device = std::ranges::find(stats->devices, ordinal, &warden::DeviceStats::device);
    wire::ViewedDevice& viewed = reply.devices.emplace_back();
    viewed.name = device->name;
    const std::string& uuid = device->facts.uuid;
    std::memcpy(viewed.uuid.data(), uuid.data(), std::min(uuid.size(), viewed.uuid.size()));
    for (const keeper::DeviceAttribute& known : device->facts.attributes) {
      viewed.attributes.push_back({known.attribute, known.value});
    }
    FillLinks(device->facts, ordinals, &viewed);
    double part = std::clamp(busy[static_cast<uint32_t>(ordinal)], 0.0, 1.0);
    viewed.busy_percent = static_cast<uint32_t>(std::lround(100 * part));
    FillMemory(*device, *stats, *peer.tenant,
               MemoryLimitOf(*table.config(), *peer.tenant, table.lendable()), &viewed);
    FillProcesses(*device, *stats, peer, program, sessions, &viewed);
  }
  return reply;
}

}  // namespace

std::vector<std::byte> EncodedView(SessionTable& table, const Peer& peer,
                                   std::span<const std::byte> request) {
  wire::Writer writer;
  wire::ViewReply reply = View(table, peer, request);
  reply.Encode(writer);
  // Many processes with long names: figures go before names.
  if (writer.size() > wire::kMaxOpenBytes) {
    for (wire::ViewedDevice& device : reply.devices) device.processes.clear();
    writer = {};
    reply.Encode(writer);
  }
  return {writer.data(), writer.data() + writer.size()};
}

}  // namespace longwire::daemon
