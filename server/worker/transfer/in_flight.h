// Limits of a session's data in the worker. Half is for queued calls, half for uploaded bytes that
// wait for their copy. The client respects the share of a stream and the upload window: a thread
// that would exceed them waits. If a client does not, the worker stops reading its log or ends the
// session.
#pragma once

#include <cstdint>

#include "server/gates/gate_page.h"

namespace longwire::worker {

struct InFlightLimits {
  static constexpr uint64_t kDefaultBytes = uint64_t{256} << 20;

  uint64_t calls = 0;    // bytes
  uint64_t uploads = 0;  // bytes
  uint64_t window = 0;   // bytes of uploads that the client may send without credit
  uint64_t stream = 0;   // bytes of unfinished calls in one stream

  // Credit that may be held back: beside it the window still has room for the largest piece.
  uint64_t held_credit() const;

  static InFlightLimits Of(uint64_t bytes);
  // The daemon's limit in the gate page. The default if the page is null or has none.
  static InFlightLimits Of(gates::GatePage* page);
};

}  // namespace longwire::worker
