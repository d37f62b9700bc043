// Queued work that will still write the program's memory: copies to it, and host functions and
// graphs, which may write anywhere. A copy from memory that is about to be written must not read it
// yet.
#pragma once

#include <cstdint>

#include "client-shim/stream/stream.h"

namespace longwire::shim {

// Anywhere in memory.
inline constexpr uint64_t kAnywhere = UINT64_MAX;

// Whether later work of the stream comes after it: not of bytes that this process writes when it
// takes in what the stream sent.
enum class WriteOrder { kLate, kInStream };

// The call at `position` of the stream writes `bytes` from `address` on.
void NoteHostWrite(Stream* stream, uint64_t position, uint64_t address, uint64_t bytes,
                   WriteOrder order = WriteOrder::kLate);

// True if unfinished work may still write some of these bytes.
bool HostWritePending(uint64_t address, uint64_t bytes);
// The same for what may be written after later work of its stream.
bool LateHostWritePending(uint64_t address, uint64_t bytes);
// True if unfinished work may write anywhere after later work of its stream, as graphs may. Then it
// requests that the worker reports the end of that work.
bool LateWritesAnywhere();
// The same as the first for copies alone, which are known to write there.
bool HostCopyPending(uint64_t address, uint64_t bytes);

}  // namespace longwire::shim
