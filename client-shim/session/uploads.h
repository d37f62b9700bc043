// Uploads: sends the program's bytes in pieces, in the log or through lanes, at once or when the
// worker requests them. The upload window bounds the bytes in flight.
#pragma once

#include <cstdint>

#include "client-shim/session/transfers.h"
#include "client-shim/session/upload_source.h"

namespace longwire::shim {

class ClientSession;

// Sends all bytes of `source` as pieces of `transfer`, in the log. With kCounted it waits while the
// upload window is full. Images are kNotCounted, since the worker takes them at once. False if the
// session is over.
enum class Window { kCounted, kNotCounted };
bool SendBytes(ClientSession& session, uint64_t transfer, const UploadSource& source,
               Window window = Window::kCounted);

// The same for bytes [from, to) of a copy, counted.
bool SendRange(ClientSession& session, uint64_t transfer, const UploadSource& source, uint64_t from,
               uint64_t to);

// Sends a module's image.
bool SendImage(ClientSession& session, uint64_t transfer, const HostPlace& place);

// Waits until `bytes` fit into the window and counts them as sent. False if the session is over.
bool WaitForUploadWindow(ClientSession& session, uint64_t bytes);
// The largest piece size, at most `wanted`, of which several fit into the window.
uint64_t LargestPiece(const ClientSession& session, uint64_t wanted);

// Sends a copy's bytes, by their size in the log or through lanes.
bool SendCopy(ClientSession& session, uint64_t transfer, const UploadSource& source);

// True if `bytes` can be sent now without waiting for the worker.
bool FitsUploadWindow(ClientSession& session, uint64_t bytes);

// The worker requests the bytes of an offered transfer: a thread of ours sends them. False if it
// has requested them before.
bool ServePull(ClientSession& session, uint64_t transfer);

// The worker has taken `bytes`.
void ReturnCredit(ClientSession& session, uint64_t bytes);

}  // namespace longwire::shim
