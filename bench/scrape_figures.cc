// What one scrape of the metrics costs beside asking the sessions: families and their text, of a
// daemon with 1,000 sessions on eight devices, 100 tenants and as many identities as are counted.
#include <benchmark/benchmark.h>
#include <prometheus/text_serializer.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>

#include "server/daemon/metrics/scrape.h"
#include "server/daemon/sessions/identity_figures.h"
#include "server/gates/latency.h"

namespace longwire::daemon {
namespace {

constexpr int kSessions = 1000, kDevices = 8, kTenants = 100, kFunctions = 200;
constexpr int kDescriptors = 8;               // of one session
constexpr uint64_t kLarge = 123'456'789'012;  // of as many digits as figures have

void AddUsers(transport::InspectReply* reply) {
  for (int i = 0; i < kTenants; ++i) {
    transport::TenantFigures* tenant = reply->add_tenants();
    tenant->set_name("tenant-" + std::to_string(i));
    tenant->set_sessions(kSessions / kTenants);
    tenant->set_memory_leased(kLarge);
    tenant->set_memory_limit(kLarge);
    tenant->set_gpu_seconds(12345.678);
    tenant->set_host_memory(kLarge);
    for (const char* of : {"round_trip", "launch_queueing", "launch_to_start"}) {
      transport::Latency* latency = tenant->add_latencies();
      latency->set_of(of);
      for (uint64_t bound : gates::kLatencyBounds) {
        latency->add_bounds(static_cast<double>(bound) / 1e9);
        latency->add_counts(kLarge);
      }
      latency->add_counts(kLarge);
      latency->set_seconds(12345.678);
    }
  }
  for (size_t i = 0; i < IdentityFigures::kIdentityLimit; ++i) {
    transport::IdentityFigures* identity = reply->add_identities();
    identity->set_tenant("tenant-" + std::to_string(i % kTenants));
    identity->set_identity("identity-" + std::to_string(i));
    identity->set_bytes_up(kLarge);
    identity->set_session_seconds(12345.678);
  }
}

// As many as that number of sessions has.
void OpenDescriptors() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  for (int i = 0; i < kSessions * kDescriptors; ++i) {
    if (dup(STDOUT_FILENO) < 0) std::perror("not as many descriptors as a busy daemon has");
  }
}

Scrape Busy() {
  Scrape scrape;
  transport::InspectReply& reply = scrape.figures;
  for (int i = 0; i < kDevices; ++i) {
    transport::Device* device = reply.add_devices();
    device->set_ordinal(i);
    device->set_total(kLarge);
    device->set_leased(kLarge / 2);
  }
  AddUsers(&reply);
  for (int i = 0; i < kSessions; ++i) {
    transport::Session* session = reply.add_sessions();
    session->set_id(123'456'000 + i);
    session->set_tenant("tenant-" + std::to_string(i % kTenants));
    session->set_bytes_up(kLarge);
    session->set_bytes_down(kLarge);
    session->add_seats()->set_device(i % kDevices);
  }
  for (int i = 0; i < kFunctions; ++i) {
    transport::CallCount* call = reply.add_calls();
    call->set_name("cuFunctionNumber" + std::to_string(i));
    call->set_count(kLarge);
  }
  scrape.process = ReadProcess();
  return scrape;
}

// Argument: whether each session has series, too (metrics_per_session).
void Scraping(benchmark::State& state) {
  Scrape scrape = Busy();
  scrape.per_session = state.range(0) != 0;
  size_t bytes = 0;
  for ([[maybe_unused]] auto _ : state) {
    scrape.process = ReadProcess();
    bytes = prometheus::TextSerializer().Serialize(FamiliesOf(scrape)).size();
  }
  state.counters["bytes"] = static_cast<double>(bytes);
}
BENCHMARK(Scraping)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

int Main(int count, char** arguments) {
  OpenDescriptors();
  benchmark::Initialize(&count, arguments);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace
}  // namespace longwire::daemon

int main(int count, char** arguments) { return longwire::daemon::Main(count, arguments); }
