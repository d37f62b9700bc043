// Sending the program's bytes up: in pieces, by the log or the lanes, with a bound on what is under
// way, now or when the worker asks for them.
#pragma once

#include <cstdint>

#include "client-shim/session/transfers.h"

namespace longwire::shim {

class Session;

// Sends all bytes of `place` as pieces of `transfer`, in the log. With kCounted it waits while too
// much is under way; images are taken by the worker at once and not counted. False when the session
// is over.
enum class Window { kCounted, kNotCounted };
bool SendBytes(Session& session, uint64_t transfer, const HostPlace& place,
               Window window = Window::kCounted);

// Sends a module's image.
bool SendImage(Session& session, uint64_t transfer, const HostPlace& place);

// Waits until that many bytes fit and counts them as sent. False when the session is over.
bool WaitForUploadWindow(Session& session, uint64_t bytes);
// The largest piece, at most `wanted`, of which the window holds several.
uint64_t LargestPiece(uint64_t wanted);

// Sends a copy's bytes by the way that fits their size.
bool SendCopy(Session& session, uint64_t transfer, const HostPlace& place);

// True if that many bytes can be sent now without waiting for the worker.
bool FitsUploadWindow(uint64_t bytes);

// The worker asks for the bytes of an offered transfer: a thread of ours sends them.
void ServePull(Session& session, uint64_t transfer);

// The worker has taken that many bytes.
void ReturnCredit(Session& session, uint64_t bytes);

}  // namespace longwire::shim
