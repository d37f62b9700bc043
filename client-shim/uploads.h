// Sending the program's bytes up: in pieces, with a bound on what is under way, now or when the
// worker asks for them.
#pragma once

#include <cstdint>

#include "client-shim/transfers.h"

namespace longwire::shim {

class Session;

// Sends all bytes of `place` as pieces of `transfer`. With kCounted it waits while too much is
// under way; images are taken by the worker at once and not counted. False when the session is
// over.
enum class Window { kCounted, kNotCounted };
bool SendBytes(Session& session, uint64_t transfer, const HostPlace& place,
               Window window = Window::kCounted);

// True if that many bytes can be sent now without waiting for the worker.
bool FitsUploadWindow(uint64_t bytes);

// The worker asks for the bytes of an offered transfer: a thread of ours sends them.
void ServePull(Session& session, uint64_t transfer);

// The worker has taken that many bytes.
void ReturnCredit(Session& session, uint64_t bytes);

}  // namespace longwire::shim
