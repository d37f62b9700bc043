// What a scrape says, as Prometheus metrics. docs/metrics.md lists them all.
#pragma once

#include <prometheus/metric_family.h>

#include <cstdint>
#include <ctime>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "proto/transport.pb.h"
#include "server/daemon/metrics/families.h"
#include "server/daemon/metrics/process_figures.h"
#include "server/daemon/moving/move_figures.h"
#include "server/daemon/sessions/opening_times.h"
#include "server/daemon/sessions/refusal.h"
#include "server/daemon/statistics/program_statistics.h"

namespace longwire::daemon {

// What it is made of.
struct Scrape {
  transport::InspectReply figures;  // as an administrator sees them
  bool per_session = false;         // figures of each session, too
  uint32_t sessions_limit = 0;
  std::map<std::string, RefusalCounts> refusals;  // by tenant
  OpeningTimes::Figures openings;
  MoveFigures::Figures moves;
  std::optional<std::time_t> certificate_expires;  // none without TLS
  ProcessFigures process;
  struct Pool {
    bool joined = false;
    bool places = false;  // this host is the placer
    uint64_t placed = 0;
  };
  std::vector<DriftedKernel> drifts;
  std::optional<Pool> pool;  // of a server that is in one, or shall be
};

prometheus::ClientMetric::Histogram HistogramOf(const OpeningTimes::Figures& figures);
std::vector<prometheus::MetricFamily> FamiliesOf(const Scrape& scrape);

// Its parts.
void AddDevices(const Scrape& scrape, Families* families);
void AddTenants(const Scrape& scrape, Families* families);
void AddHealth(const Scrape& scrape, Families* families);
void AddLatencies(const Scrape& scrape, Families* families);
void AddDrifts(const Scrape& scrape, Families* families);
void AddIdentities(const Scrape& scrape, Families* families);
void AddSessions(const Scrape& scrape, Families* families);
void AddDaemon(const Scrape& scrape, Families* families);
void AddOpenings(const Scrape& scrape, Families* families);
void AddMoves(const Scrape& scrape, Families* families);
void AddCalls(const Scrape& scrape, Families* families);
void AddAdmission(const Scrape& scrape, Families* families);
void AddModuleCache(const Scrape& scrape, Families* families);
void AddPool(const Scrape& scrape, Families* families);
void AddProcess(const Scrape& scrape, Families* families);

}  // namespace longwire::daemon
