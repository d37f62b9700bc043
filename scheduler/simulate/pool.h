// A pool of many hosts on a virtual clock: programs of all sizes come and end, the planner places
// them, and what that costs etcd is counted.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scheduler/pool/pool.h"

namespace longwire::scheduler::simulate {

struct PoolOptions {
  pool::Options queue;
  uint32_t hosts = 1000;
  uint32_t devices = 8;          // of each
  uint64_t bytes = 80ull << 30;  // of each device
  uint32_t seconds = 600;
  uint32_t rate = 20;      // programs that come each second
  uint32_t longest = 600;  // seconds that a program runs
  uint32_t tenants = 20;
  uint64_t programs = UINT64_MAX;  // that come in all
  uint64_t seed = 1;
  bool until_done = false;  // it ends with the last program, before `seconds`
};

struct PoolResult {
  struct Placement {
    uint64_t second;
    std::string number;
    std::string host;
  };
  std::vector<Placement> placements;
  uint64_t refused = 0;
  size_t waiting = 0;           // at the end
  uint64_t longest_wait = 0;    // seconds
  std::vector<double> pass_ms;  // what each pass took on this machine
  uint64_t writes = 0;          // keys put and deleted in etcd
  uint64_t transactions = 0;    // with them
  uint64_t events = 0;          // that watches send of them
  uint64_t warm = 0;            // placed where the same program of the tenant ran
  double fragmentation = 0;     // mean share of free memory that is on devices in use
  double used = 0;              // mean share of memory that is promised
};

PoolResult SimulatePool(const PoolOptions& options);

}  // namespace longwire::scheduler::simulate
