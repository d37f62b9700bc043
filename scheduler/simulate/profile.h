// What a pseudo tenant does: think, make a request of some kernels, think again.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scheduler/types.h"

namespace longwire::scheduler::simulate {

struct Profile {
  TenantName tenant;
  PriorityClass priority_class = PriorityClass::kBestEffort;
  uint32_t weight = 1;
  DeviceId device = 0;

  Time think{0};         // between two requests; 0: always at work
  bool regular = false;  // exactly `think`; otherwise exponentially distributed around it
  bool daily = false;    // thinks three times as long at night
  uint32_t kernels = 1;  // in a request
  Time kernel{0};        // its length on an idle device
  bool varied = false;   // lengths are exponentially distributed around `kernel`
  // Between a kernel's end and the next launch of the request; 0: all are queued at once.
  Time gap{0};
};

// A made-up city of tenants on `devices` devices: a fifth are latency critical (short requests of
// small kernels, with gaps), the others run jobs now and then; one in two hundred of these never
// stops.
std::vector<Profile> MakePopulation(uint32_t tenants, uint32_t devices, uint64_t seed);

}  // namespace longwire::scheduler::simulate
