#include "server/daemon/metrics.h"

#include <prometheus/metric_family.h>

#include <vector>

namespace longwire::daemon {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

// One metric with all its label sets.
class Family {
 public:
  Family(const char* name, const char* help, MetricType type) : family_{name, help, type, {}} {}

  void Add(const Labels& labels, double value) {
    ClientMetric metric;
    metric.label = labels;
    metric.counter.value = value;
    metric.gauge.value = value;
    family_.metric.push_back(std::move(metric));
  }
  MetricFamily Take() { return std::move(family_); }

 private:
  MetricFamily family_;
};

constexpr MetricType kGauge = MetricType::Gauge;
constexpr MetricType kCounter = MetricType::Counter;

void AddDevices(const transport::InspectReply& reply, std::vector<MetricFamily>* families) {
  Family memory("longwire_device_memory_bytes", "Memory of a device by what it is used for.",
                kGauge);
  Family refused("longwire_device_leases_refused_total", "Leases of memory that were refused.",
                 kCounter);
  Family asked("longwire_device_reclaims_total",
               "Times that a session was asked to give back memory that it keeps free.", kCounter);
  Family reclaimed("longwire_device_reclaimed_bytes_total",
                   "Bytes that sessions gave back because another one lacked them, or because "
                   "they had not used them for long.",
                   kCounter);
  Family remaps("longwire_device_remaps_total",
                "Copies of buffers that grow which were made by mapping their memory.", kCounter);
  Family remapped("longwire_device_remapped_bytes_total", "Bytes of these copies.", kCounter);
  Family moved("longwire_device_swapped_bytes_total",
               "Bytes of idle sessions that were moved to the host's memory, and back.", kCounter);
  Family host("longwire_device_swap_host_bytes", "Memory of the host for that, and what is in use.",
              kGauge);
  Family busy("longwire_device_busy_ratio", "Part of the last minute in which it worked.", kGauge);
  Family sessions("longwire_device_sessions", "Sessions on the device.", kGauge);
  for (const transport::Device& device : reply.devices()) {
    std::string number = std::to_string(device.ordinal());
    memory.Add({{"device", number}, {"state", "total"}}, static_cast<double>(device.total()));
    memory.Add({{"device", number}, {"state", "lendable"}}, static_cast<double>(device.lendable()));
    memory.Add({{"device", number}, {"state", "leased"}}, static_cast<double>(device.leased()));
    memory.Add({{"device", number}, {"state", "idle"}}, static_cast<double>(device.idle()));
    memory.Add({{"device", number}, {"state", "clearing"}},
               static_cast<double>(device.scrub_pending()));
    memory.Add({{"device", number}, {"state", "charged"}}, static_cast<double>(device.charged()));
    memory.Add({{"device", number}, {"state", "others"}}, static_cast<double>(device.others()));
    refused.Add({{"device", number}}, static_cast<double>(device.refused()));
    asked.Add({{"device", number}}, static_cast<double>(device.asked()));
    reclaimed.Add({{"device", number}, {"why", "drain"}}, static_cast<double>(device.drained()));
    reclaimed.Add({{"device", number}, {"why", "unused"}}, static_cast<double>(device.returned()));
    remaps.Add({{"device", number}}, static_cast<double>(device.remaps()));
    remapped.Add({{"device", number}}, static_cast<double>(device.remapped()));
    moved.Add({{"device", number}, {"direction", "out"}},
              static_cast<double>(device.swapped_out()));
    moved.Add({{"device", number}, {"direction", "in"}}, static_cast<double>(device.swapped_in()));
    host.Add({{"device", number}, {"state", "total"}},
             static_cast<double>(device.swap_host_memory()));
    host.Add({{"device", number}, {"state", "used"}}, static_cast<double>(device.swapped()));
    busy.Add({{"device", number}}, device.busy());
    sessions.Add({{"device", number}}, device.sessions());
  }
  for (Family* family : {&memory, &refused, &asked, &reclaimed, &remaps, &remapped, &moved, &host,
                         &busy, &sessions}) {
    families->push_back(family->Take());
  }
}

void AddTenants(const transport::InspectReply& reply, std::vector<MetricFamily>* families) {
  Family sessions("longwire_tenant_sessions", "Sessions of a tenant.", kGauge);
  Family memory("longwire_tenant_memory_bytes",
                "Device memory leased to a tenant, and what it has from the driver itself.",
                kGauge);
  Family charged("longwire_tenant_memory_charged_bytes",
                 "The part that it has from the driver itself.", kGauge);
  Family limit("longwire_tenant_memory_limit_bytes", "A tenant's limit, where it has one.", kGauge);
  Family time("longwire_tenant_gpu_seconds_total", "GPU time that a tenant has used.", kCounter);
  Family awake("longwire_tenant_awake_seconds_total",
               "Processor time in which threads of a tenant's sessions stayed awake.", kCounter);
  Family host("longwire_tenant_host_memory_bytes",
              "Memory of the host that a tenant's workers hold for its sessions: calls and bytes "
              "that wait, pinned memory, modules.",
              kGauge);
  Family host_limit("longwire_tenant_host_memory_limit_bytes", "A tenant's limit of that.", kGauge);
  for (const transport::TenantFigures& tenant : reply.tenants()) {
    Labels labels = {{"tenant", tenant.name()}};
    sessions.Add(labels, tenant.sessions());
    memory.Add(labels, static_cast<double>(tenant.memory_leased()));
    charged.Add(labels, static_cast<double>(tenant.memory_charged()));
    if (tenant.memory_limit() != UINT64_MAX) {
      limit.Add(labels, static_cast<double>(tenant.memory_limit()));
    }
    time.Add(labels, tenant.gpu_seconds());
    awake.Add(labels, tenant.awake_seconds());
    host.Add(labels, static_cast<double>(tenant.host_memory()));
    host_limit.Add(labels, static_cast<double>(tenant.host_memory_limit()));
  }
  for (Family* family : {&sessions, &memory, &charged, &limit, &time, &awake, &host, &host_limit}) {
    families->push_back(family->Take());
  }
}

void AddSessions(const transport::InspectReply& reply, std::vector<MetricFamily>* families) {
  Family bytes("longwire_session_bytes_total", "Bytes of a session's log by direction.", kCounter);
  Family saved("longwire_session_saved_bytes_total",
               "Bytes of a session's logs that compression made less.", kCounter);
  Family held("longwire_session_held_total", "Times that a session's work was held back.",
              kCounter);
  Family host("longwire_session_host_memory_bytes",
              "Memory of the host that a session's worker holds for it.", kGauge);
  Family closed("longwire_session_gate_closed", "1 while a session's gate is closed.", kGauge);
  for (const transport::Session& session : reply.sessions()) {
    std::string id = std::to_string(session.id());
    bytes.Add({{"session", id}, {"tenant", session.tenant()}, {"direction", "up"}},
              static_cast<double>(session.bytes_up()));
    bytes.Add({{"session", id}, {"tenant", session.tenant()}, {"direction", "down"}},
              static_cast<double>(session.bytes_down()));
    saved.Add({{"session", id}, {"tenant", session.tenant()}},
              static_cast<double>(session.bytes_saved()));
    host.Add({{"session", id}, {"tenant", session.tenant()}},
             static_cast<double>(session.host_memory()));
    for (const transport::Seat& seat : session.seats()) {
      Labels labels = {
          {"session", id}, {"tenant", session.tenant()}, {"device", std::to_string(seat.device())}};
      held.Add(labels, static_cast<double>(seat.held()));
      closed.Add(labels, seat.closed() ? 1 : 0);
    }
  }
  for (Family* family : {&bytes, &saved, &host, &held, &closed}) {
    families->push_back(family->Take());
  }
}

void AddIdentities(const transport::InspectReply& reply, std::vector<MetricFamily>* families) {
  Family sessions("longwire_identity_sessions", "Sessions of an identity.", kGauge);
  Family memory("longwire_identity_memory_bytes", "Device memory leased to them.", kGauge);
  Family opened("longwire_identity_sessions_opened_total", "Sessions that it opened.", kCounter);
  Family refused("longwire_identity_sessions_refused_total", "Sessions that it was refused.",
                 kCounter);
  Family bytes("longwire_identity_bytes_total", "Bytes of its sessions' logs by direction.",
               kCounter);
  Family time("longwire_identity_session_seconds_total",
              "How long its sessions were there, together.", kCounter);
  for (const transport::IdentityFigures& one : reply.identities()) {
    Labels labels = {{"tenant", one.tenant()}, {"identity", one.identity()}};
    sessions.Add(labels, one.sessions());
    memory.Add(labels, static_cast<double>(one.memory_leased()));
    opened.Add(labels, static_cast<double>(one.opened()));
    refused.Add(labels, static_cast<double>(one.refused()));
    time.Add(labels, one.session_seconds());
    labels.push_back({"direction", "up"});
    bytes.Add(labels, static_cast<double>(one.bytes_up()));
    labels.back().value = "down";
    bytes.Add(labels, static_cast<double>(one.bytes_down()));
  }
  for (Family* family : {&sessions, &memory, &opened, &refused, &bytes, &time}) {
    families->push_back(family->Take());
  }
}

void AddTotals(const transport::InspectReply& reply, std::vector<MetricFamily>* families) {
  Family opened("longwire_sessions_opened_total", "Sessions opened.", kCounter);
  Family refused("longwire_sessions_refused_total", "Sessions refused.", kCounter);
  opened.Add({}, static_cast<double>(reply.daemon().sessions_opened()));
  refused.Add({}, static_cast<double>(reply.daemon().sessions_failed()));
  Family turns("longwire_turns_total", "Turns of best-effort sessions, by how they went.",
               kCounter);
  turns.Add({{"kind", "begun"}}, static_cast<double>(reply.scheduler().turns()));
  turns.Add({{"kind", "overrun"}}, static_cast<double>(reply.scheduler().overruns()));
  turns.Add({{"kind", "forced"}}, static_cast<double>(reply.scheduler().forced()));
  Family calls("longwire_calls_total", "Calls by function.", kCounter);
  Family trips("longwire_round_trips_total", "Calls whose answer a client waited for.", kCounter);
  double round_trips = 0;
  for (const transport::CallCount& call : reply.calls()) {
    calls.Add({{"function", call.name()}}, static_cast<double>(call.count()));
    if (call.round_trip()) round_trips += static_cast<double>(call.count());
  }
  trips.Add({}, round_trips);
  for (Family* family : {&opened, &refused, &turns, &calls, &trips}) {
    families->push_back(family->Take());
  }
}

void AddAdmission(const transport::InspectReply& reply, std::vector<MetricFamily>* families) {
  const transport::Admission& admission = reply.daemon().admission();
  Family waiting("longwire_waiting", "What has no session yet, and how much may.", kGauge);
  Family refused("longwire_admission_refused_total", "What was refused or closed, by reason.",
                 kCounter);
  Family descriptors("longwire_session_descriptors",
                     "Descriptors for sessions, and those that running ones may need.", kGauge);
  Family lines("longwire_log_lines_left_out_total", "Lines beyond the limit of the log.", kCounter);
  waiting.Add({{"kind", "connections"}}, admission.connections());
  waiting.Add({{"kind", "streams"}}, admission.streams());
  waiting.Add({{"kind", "limit"}}, admission.waiting_limit());
  refused.Add({{"reason", "connection"}}, static_cast<double>(admission.closed()));
  refused.Add({{"reason", "stream"}}, static_cast<double>(admission.refused_streams()));
  refused.Add({{"reason", "call"}}, static_cast<double>(admission.refused_calls()));
  refused.Add({{"reason", "rate"}}, static_cast<double>(admission.refused_rate()));
  refused.Add({{"reason", "limit"}}, static_cast<double>(admission.refused_limit()));
  descriptors.Add({{"state", "limit"}}, admission.session_descriptors());
  descriptors.Add({{"state", "held"}}, admission.held_descriptors());
  lines.Add({}, static_cast<double>(admission.log_lines_left_out()));
  for (Family* family : {&waiting, &refused, &descriptors, &lines}) {
    families->push_back(family->Take());
  }
}

void AddModuleCache(const transport::InspectReply& reply, std::vector<MetricFamily>* families) {
  const transport::ModuleCache& cache = reply.daemon().module_cache();
  Family images("longwire_module_cache_images", "Module images in the cache.", kGauge);
  Family bytes("longwire_module_cache_bytes", "Bytes of these, and how many there may be.", kGauge);
  Family asked("longwire_module_cache_lookups_total", "Images asked for, by outcome.", kCounter);
  Family saved("longwire_module_cache_saved_bytes_total", "Bytes that were not sent.", kCounter);
  Family gone("longwire_module_cache_removed_total", "Images removed, by reason.", kCounter);
  images.Add({}, static_cast<double>(cache.images()));
  bytes.Add({{"state", "kept"}}, static_cast<double>(cache.bytes()));
  bytes.Add({{"state", "limit"}}, static_cast<double>(cache.limit()));
  asked.Add({{"outcome", "hit"}}, static_cast<double>(cache.hits()));
  asked.Add({{"outcome", "miss"}}, static_cast<double>(cache.misses()));
  saved.Add({}, static_cast<double>(cache.saved()));
  gone.Add({{"reason", "room"}}, static_cast<double>(cache.evicted()));
  gone.Add({{"reason", "damage"}}, static_cast<double>(cache.damaged()));
  for (Family* family : {&images, &bytes, &asked, &saved, &gone}) {
    families->push_back(family->Take());
  }
}

}  // namespace

std::vector<MetricFamily> MetricsOf(const transport::InspectReply& reply) {
  std::vector<MetricFamily> families;
  AddDevices(reply, &families);
  AddTenants(reply, &families);
  AddIdentities(reply, &families);
  AddSessions(reply, &families);
  AddTotals(reply, &families);
  AddModuleCache(reply, &families);
  AddAdmission(reply, &families);
  return families;
}

class MetricsEndpoint::Source : public prometheus::Collectable {
 public:
  explicit Source(std::function<transport::InspectReply()> inspect)
      : inspect_(std::move(inspect)) {}
  std::vector<MetricFamily> Collect() const override { return MetricsOf(inspect_()); }

 private:
  const std::function<transport::InspectReply()> inspect_;
};

MetricsEndpoint::MetricsEndpoint(std::function<transport::InspectReply()> inspect)
    : source_(std::make_shared<Source>(std::move(inspect))) {}

MetricsEndpoint::~MetricsEndpoint() = default;

bool MetricsEndpoint::Start(const std::string& address, std::string* sentence) {
  // The library has no other way to say that it cannot listen.
  try {
    exposer_ = std::make_unique<prometheus::Exposer>(address);
  } catch (const std::exception& problem) {
    *sentence = "metrics cannot be served at " + address + ": " + problem.what();
    return false;
  }
  exposer_->RegisterCollectable(source_);
  return true;
}

}  // namespace longwire::daemon
