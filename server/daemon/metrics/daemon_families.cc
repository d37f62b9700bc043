// The daemon itself, what it admits and what was called.
#include "server/daemon/metrics/scrape.h"

namespace longwire::daemon {

void AddDaemon(const Scrape& scrape, Families* families) {
  const transport::Daemon& daemon = scrape.figures.daemon();
  families->Gauge("longwire_build_info", "1, with the daemon's version and those of its protocol.")
      .Add({{"version", daemon.version()},
            {"oldest_protocol", std::to_string(daemon.protocol())},
            {"newest_protocol", std::to_string(daemon.newest_protocol())}},
           1);
  families
      ->Gauge("longwire_draining",
              "1 while the daemon opens no new sessions by order of an administrator.")
      .Add({}, daemon.draining() ? 1 : 0);
  families
      ->Gauge("longwire_warden_up",
              "1 while longwire-warden answers; without it there are no figures of devices.")
      .Add({}, daemon.warden_problem().empty() ? 1 : 0);
  Family& expires = families->Gauge(
      "longwire_certificate_expiry_timestamp_seconds",
      "When the server's certificate expires, in seconds since 1970; only with TLS.");
  if (scrape.certificate_expires) expires.Add({}, *scrape.certificate_expires);
}

void AddPool(const Scrape& scrape, Families* families) {
  if (!scrape.pool) return;
  families->Gauge("longwire_pool_joined", "1 while the server is in its pool.")
      .Add({}, scrape.pool->joined ? 1 : 0);
  families->Gauge("longwire_pool_placer", "1 at the server that places the pool's sessions.")
      .Add({}, scrape.pool->places ? 1 : 0);
  families
      ->Gauge("longwire_pool_withdrawn",
              "1 while an administrator has taken the server's host out of service through its "
              "pool (cordon or drain with its name).")
      .Add({}, scrape.figures.daemon().has_withdrawn() ? 1 : 0);
  families
      ->Counter("longwire_pool_placed_total",
                "Sessions that this server has placed in its pool, on itself and on others.")
      .Add({}, static_cast<double>(scrape.pool->placed));
}

void AddProcess(const Scrape& scrape, Families* families) {
  const ProcessFigures& process = scrape.process;
  auto add = [](Family& family, const auto& value) {
    if (value) family.Add({}, *value);
  };
  add(families->Gauge("process_start_time_seconds",
                      "When longwired started, in seconds since 1970."),
      process.start_time);
  add(families->Counter("process_cpu_seconds_total", "Processor time of longwired."),
      process.cpu_seconds);
  add(families->Gauge("process_virtual_memory_bytes", "Address space of longwired."),
      process.virtual_bytes);
  add(families->Gauge("process_resident_memory_bytes", "Memory of longwired."),
      process.resident_bytes);
  add(families->Gauge("process_open_fds", "Open file descriptors of longwired."),
      process.open_descriptors);
  add(families->Gauge("process_max_fds", "How many file descriptors longwired may have open."),
      process.most_descriptors);
}

void AddCalls(const Scrape& scrape, Families* families) {
  const transport::SchedulerFigures& scheduler = scrape.figures.scheduler();
  families->Counter("longwire_turns_total", "Turns of best-effort sessions.")
      .Add({}, scheduler.turns());
  families
      ->Counter("longwire_turns_overrun_total",
                "Turns of best-effort sessions that had not drained when the next one began.")
      .Add({}, scheduler.overruns());
  families
      ->Counter("longwire_turns_forced_total",
                "Turns of best-effort sessions that began beside latency-critical work, after the "
                "longest wait.")
      .Add({}, scheduler.forced());
  Family& calls = families->Counter("longwire_calls_total", "Calls of programs, by function.");
  Family& trips =
      families->Counter("longwire_round_trips_total", "Calls whose answer a program waited for.");
  uint64_t round_trips = 0;
  for (const transport::CallCount& call : scrape.figures.calls()) {
    calls.Add({{"function", call.name()}}, call.count());
    if (call.round_trip()) round_trips += call.count();
  }
  trips.Add({}, round_trips);
}

void AddAdmission(const Scrape& scrape, Families* families) {
  const transport::Admission& admission = scrape.figures.daemon().admission();
  Family& waiting = families->Gauge("longwire_waiting",
                                    "Connections and streams that have no session yet, by kind.");
  waiting.Add({{"kind", "connections"}}, admission.connections());
  waiting.Add({{"kind", "streams"}}, admission.streams());
  families->Gauge("longwire_waiting_limit", "How many connections, and how many streams, may wait.")
      .Add({}, admission.waiting_limit());
  Family& refused = families->Counter(
      "longwire_admission_refused_total",
      "What was refused or closed before it asked for a session, by kind: connections that others "
      "replaced, took too long or sent too much; streams and calls beyond a limit.");
  refused.Add({{"kind", "connections"}}, admission.closed());
  refused.Add({{"kind", "streams"}}, admission.refused_streams());
  refused.Add({{"kind", "calls"}}, admission.refused_calls());
  families
      ->Gauge("longwire_session_descriptors", "File descriptors that running sessions may need.")
      .Add({}, admission.held_descriptors());
  families
      ->Gauge("longwire_session_descriptors_limit", "File descriptors that there are for sessions.")
      .Add({}, admission.session_descriptors());
  families->Counter("longwire_log_lines_left_out_total", "Lines that were too many for the log.")
      .Add({}, admission.log_lines_left_out());
}

void AddModuleCache(const Scrape& scrape, Families* families) {
  const transport::ModuleCache& cache = scrape.figures.daemon().module_cache();
  families->Gauge("longwire_module_cache_images", "Module images in the cache.")
      .Add({}, cache.images());
  families->Gauge("longwire_module_cache_bytes", "Bytes of the module images in the cache.")
      .Add({}, cache.bytes());
  families
      ->Gauge("longwire_module_cache_limit_bytes", "How many bytes of module images there may be.")
      .Add({}, cache.limit());
  Family& asked = families->Counter("longwire_module_cache_lookups_total",
                                    "Images that a worker asked for, by outcome.");
  asked.Add({{"outcome", "hit"}}, cache.hits());
  asked.Add({{"outcome", "miss"}}, cache.misses());
  families
      ->Counter("longwire_module_cache_saved_bytes_total",
                "Bytes that programs did not send because the cache had them.")
      .Add({}, cache.saved());
  Family& gone = families->Counter("longwire_module_cache_removed_total",
                                   "Images that left the cache: they made room, or their files "
                                   "were damaged.");
  gone.Add({{"reason", "room"}}, cache.evicted());
  gone.Add({{"reason", "damage"}}, cache.damaged());
}

}  // namespace longwire::daemon
