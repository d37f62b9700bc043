// What the shim keeps per program thread, and how it starts threads of its own.
#pragma once

#include <cstdint>
#include <vector>

namespace longwire::shim {

struct Context;
struct Stream;

// Modes of cuThreadExchangeStreamCaptureMode.
enum class CaptureMode : uint32_t { kGlobal = 0, kThreadLocal = 1, kRelaxed = 2 };

struct ThreadState {
  uint32_t number = 0;               // on the wire, from 1
  std::vector<Context*> contexts;    // the stack; the last is current
  std::vector<Stream*> own_streams;  // per-thread default streams, one per context used
  CaptureMode capture_mode = CaptureMode::kGlobal;
  uint32_t strict_captures = 0;     // captures in mode global or thread-local begun by this thread
  bool runs_host_function = false;  // calls that leave the client are refused
  uint64_t call_began = 0;          // while calls are traced: nanoseconds of a steady clock
  uint64_t work_sent = UINT64_MAX;  // likewise: the TracePosition of the call's newest work
};

// The calling thread's state. It is torn down at the thread's end (its own streams are destroyed
// then), but not at process exit, so calls from exit handlers still find it.
ThreadState& ThisThread();

// Called at a thread's end with each of its own streams.
void SetThreadEndHook(void (*hook)(ThreadState&));

// Starts a detached thread that blocks all signals, has a small stack, and may run wherever the
// process may (the creating thread may be pinned). False if the system refuses.
bool StartThread(const char* name, void (*body)(void*), void* argument);
// How many of them have not ended.
int OwnThreads();

}  // namespace longwire::shim
