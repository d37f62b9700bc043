// Attributes of a launch: what of them the driver would refuse at once, and the events that some
// name.
#pragma once

#include <span>
#include <vector>

#include "client-shim/code/launch.h"
#include "client-shim/stream/event.h"

namespace longwire::shim {

// Events of launch attributes. They are recorded behind the kernel: later than a device may tell
// them (once all blocks have begun, or have said so), which cuda.h allows, and never earlier.
struct LaunchEvents {
  std::vector<Event*> events;
  std::vector<CUlaunchAttribute> others;  // what travels, if there are events

  CUresult Add(CUevent handle, int flags, const Context* context);
  CUresult Record(Stream* stream) const;
};

// `attributes` become those that travel; they may lie in `events` then.
CUresult CheckAttributes(std::span<const CUlaunchAttribute>* attributes, const LaunchShape& shape,
                         Function* function, const Context* context, LaunchEvents* events);

}  // namespace longwire::shim
