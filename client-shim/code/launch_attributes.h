// Attributes of a launch: checks those that the driver would refuse at once, and handles the events
// in them.
#pragma once

#include <span>
#include <vector>

#include "client-shim/code/launch.h"
#include "client-shim/stream/event.h"

namespace longwire::shim {

// Events of launch attributes. They are recorded behind the kernel. A device may record them
// earlier (when all blocks have started or have triggered them); cuda.h allows the later record.
struct LaunchEvents {
  std::vector<Event*> events;
  std::vector<CUlaunchAttribute> others;  // the attributes to send, if there are events

  CUresult Add(CUevent handle, int flags, const Context* context);
  CUresult Record(Stream* stream) const;
};

// Removes attributes that are not sent from `attributes`, which may then point into `events`.
CUresult CheckAttributes(std::span<const CUlaunchAttribute>* attributes, const LaunchShape& shape,
                         Function* function, const Context* context, LaunchEvents* events);

}  // namespace longwire::shim
