// Host functions: their tickets, and the thread that runs them.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace longwire::shim {

class ClientSession;
struct Stream;

// A ticket for a host function. A persistent one (of a graph) may run many times.
uint64_t NewHostFunction(CUhostFn function, void* data, uint32_t context_number, bool persistent);
// The same for what this client itself does between servers, once: other host functions do not wait
// for it, and it may wait for work. `at_once`: it does not run when the worker has reached it, but
// by RunFunctionAcross.
uint64_t NewFunctionAcross(CUhostFn function, void* data, uint32_t context_number, bool at_once);
// All before it has finished, whether or not the worker has reached it. The stream's call at that
// position has finished when the function has, unless its context has failed.
void RunFunctionAcross(Stream* stream, uint64_t ticket, uint64_t position);
// A function that runs as soon as ready(data) is true. Other host functions do not wait for it.
using HostCondition = bool (*)(const void* data);
uint64_t NewHostWait(HostCondition ready, CUhostFn then, void* data, uint32_t context_number);
// The older form, a callback that gets the stream's state.
uint64_t NewStreamCallback(CUstreamCallback callback, CUstream handle, Stream* stream, void* data);
// A function that destroys an object of the program. It runs once; the worker is not notified.
uint64_t NewDestructor(CUhostFn function, void* object);
void DropHostFunction(uint64_t ticket);
bool FindHostFunction(uint64_t ticket, CUhostFn* function, void** data);

// The context failed: host functions that wait in its streams are dropped; callbacks are called
// once, with the error.
void FailHostFunctions(uint32_t context_number);
// The same for all contexts: the session has ended.
void FailAllHostFunctions();

// The worker reached that point: the callback thread runs the function, then says that it is done.
// False if the worker cannot have reached it: no such ticket was given out, it waits already, or it
// is a graph's and no graph runs.
bool RunHostFunction(ClientSession& session, uint64_t ticket);

}  // namespace longwire::shim
