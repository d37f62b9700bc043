// Functions of the program that run at a point of a stream: tickets, and the thread that runs them.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace longwire::shim {

class Session;
struct Stream;

// A ticket for a host function. A persistent one (of a graph) may run many times.
uint64_t NewHostFunction(CUhostFn function, void* data, uint32_t context_number, bool persistent);
// One that runs as soon as ready(data) holds; others need not wait for it.
using HostCondition = bool (*)(const void* data);
uint64_t NewHostWait(HostCondition ready, CUhostFn then, void* data, uint32_t context_number);
// The older form, which is told the stream's state.
uint64_t NewStreamCallback(CUstreamCallback callback, CUstream handle, Stream* stream, void* data);
// A function that destroys an object of the program: it runs once, and the worker is not told.
uint64_t NewDestructor(CUhostFn function, void* object);
void DropHostFunction(uint64_t ticket);
bool FindHostFunction(uint64_t ticket, CUhostFn* function, void** data);

// The context failed: the functions that wait in its streams are not called any more, callbacks
// are, once, with the error.
void FailHostFunctions(uint32_t context_number);
// The same of all contexts: the session has ended.
void FailAllHostFunctions();

// The worker reached that point: the callback thread runs the function, then says that it is done.
void RunHostFunction(Session& session, uint64_t ticket);

}  // namespace longwire::shim
