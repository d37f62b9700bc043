// Runs the pool's planner against made-up programs on made-up hosts, on a virtual clock: what
// policies leave over, who waits, what a placement costs and what etcd has to write.
#pragma once

#include <cstdint>
#include <map>
#include <queue>
#include <string>
#include <tuple>
#include <vector>

#include "scheduler/pool/pool.h"
#include "scheduler/simulate/random.h"

namespace longwire::scheduler::simulate {

struct PoolOptions {
  uint32_t hosts = 1000;
  uint32_t devices = 8;  // of each
  uint32_t tenants = 50;
  double load = 0.85;  // of the devices' memory, that is asked for on average
  Time mean_session = std::chrono::minutes(20);
  std::string policy = "least_loaded";
  uint64_t seed = 1;
};

struct PoolResult {
  uint64_t asked = 0, placed = 0, waiting = 0;  // sessions
  double wait_p50 = 0, wait_p99 = 0;            // of those placed, in seconds of the virtual clock
  double plan_p50 = 0, plan_p99 = 0;            // of one pass, in milliseconds of this machine
  double used = 0;                              // of all memory, on average
  // Of the devices that are free as a whole: on average, those that lie where a program for four
  // cannot get them.
  double stranded = 0;
  // Each second. A session: a request, the transaction that places it, its opening, the one that
  // gives it back, an answer that is taken away. A host: its load, each two seconds.
  double transactions = 0, writes = 0;
  double watched = 0;  // of the writes, those that the placer is notified of by its watch
};

class PoolSimulation {
 public:
  explicit PoolSimulation(const PoolOptions& options);
  // Goes on until then. Once.
  PoolResult Run(Time until);

 private:
  struct Asking {
    pool::Wish wish;
    Time since{0};
    Time length{0};
  };
  struct Running {
    size_t host = 0;
    std::vector<int32_t> devices;
    uint64_t bytes = 0;
  };
  using Ending = std::pair<Time, Running>;
  struct Later {
    bool operator()(const Ending& one, const Ending& other) const {
      return one.first > other.first;
    }
  };

  Asking NewProgram(Time now);
  void End(const Running& session);
  void Plan(Time now);
  void Start(const Asking& asking, const pool::Decision& decision, Time now);
  void Sample();
  PoolResult Summarize(Time until);

  const PoolOptions options_;
  Random random_;
  pool::Planner planner_;
  std::vector<pool::HostState> hosts_;
  std::map<std::string, size_t> by_name_;
  std::vector<Asking> asking_;
  std::priority_queue<Ending, std::vector<Ending>, Later> endings_;
  uint64_t asked_ = 0, placed_ = 0, ended_ = 0, placings_ = 0;
  std::vector<double> waits_, plans_;
  double used_ = 0, stranded_ = 0;
  uint64_t samples_ = 0;
};

}  // namespace longwire::scheduler::simulate
