// How much of its client's data a session may hold in the worker at once. Half of it is for calls
// that wait for their turn in a stream, the other half for uploads that wait for their copy. The
// client keeps to the share of a stream and to the window of uploads, and lets only the thread wait
// that goes beyond; the worker stops reading the log, or ends the session, where a client does not.
#pragma once

#include <cstdint>

#include "server/gates/gate_page.h"

namespace longwire::worker {

struct InFlightLimits {
  static constexpr uint64_t kDefaultBytes = uint64_t{256} << 20;

  uint64_t calls = 0;    // bytes
  uint64_t uploads = 0;  // bytes
  uint64_t window = 0;   // of uploads: what the client may send before any of it was credited
  uint64_t stream = 0;   // of calls: what one stream may have unfinished

  static InFlightLimits Of(uint64_t bytes);
  // As the daemon wrote it there; a null page or one without: the default.
  static InFlightLimits Of(gates::GatePage* page);
};

}  // namespace longwire::worker
