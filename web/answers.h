// What the page asks for, as JSON. No HTTP here.
#pragma once

#include <string>

#include "web/sampler.h"
#include "web/viewer.h"

namespace longwire::web {

// The present: the picture of longwire top, who waits for whom, latencies, and events after that
// number.
std::string NowJson(Sampler& sampler, const Viewer& viewer, uint64_t events_after);

struct MemoryQuestion {
  int32_t device = 0;
  int64_t begin = 0, end = 0;  // seconds since 1970
  int columns = 300;
};
// A device's memory and work over time.
std::string MemoryJson(Sampler& sampler, const Viewer& viewer, const MemoryQuestion& question);

}  // namespace longwire::web
