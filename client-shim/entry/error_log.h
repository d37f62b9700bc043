// The driver's log of errors: failed calls, refused calls with the reason, and the server's
// messages on calls that failed later. CUDA_LOG_FILE (stdout, stderr or a path) gets every message
// at once, as natively.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace longwire::shim {

// At most kLogBytes of the newest messages are kept.
inline constexpr size_t kLogBytes = 25600;

// Callbacks run on the caller's thread, with no lock held.
void LogError(const std::string& text);
// Without callbacks: for threads on which the program's code must not run.
void LogErrorQuietly(const std::string& text);

// Why the server refused memory: the next call that fails for lack of it says so. Empty: there is
// enough again.
void SetLackReason(const std::string& text);
std::string TakeLackReason();

CUresult AddLogCallback(CUlogsCallback callback, void* data, CUlogsCallbackHandle* handle);
CUresult RemoveLogCallback(CUlogsCallbackHandle handle);

// Messages have numbers from 1 on; an iterator is the number of the next one.
CUlogIterator NextLogMessage();
// The messages from `iterator` on (nullptr: all that are kept), one per line. A first line says if
// older ones are lost. Moves the iterator behind them.
std::string CollectLog(CUlogIterator* iterator);

}  // namespace longwire::shim
