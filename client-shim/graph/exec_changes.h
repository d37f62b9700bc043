// Changes of executables that go without a round trip. Some programs make dozens before each launch
// (JAX 29 of kernels, and one of a child graph). A change whose success is known beforehand is sent
// without waiting:
// - of a kernel, with the shape and the number of parameter bytes that the driver has accepted in
//   that node before: it does not look at the parameters' values;
// - of a child, to a graph that the driver has accepted in that node before, and that nobody has
//   changed since.
// The worker issues a launch behind the changes before it. If one is refused after all, a sentence
// says so, and the executable is not launched (server/worker/graph/exec_changes.h).
// LONGWIRE_DISABLE=unawaited-sets: each change waits for its answer.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "client-shim/session/session.h"
#include "longwire/calls.h"

namespace longwire::shim {

// `set` names an executable. CUDA_SUCCESS if the change was accepted, or is one as above.
CUresult SetKernelInExec(const Where& where, const calls::lwGraphSetKernel& set);

// The same for a child, if it is one as above; else false, and the caller asks.
bool SetKnownChild(const Where& where, const calls::lwGraphSetChild& set, CUresult* result);
// The driver has accepted this child; `changes`: ClientSession::changes() before.
void NoteChild(const calls::lwGraphSetChild& set, uint64_t changes);

// The error of a change of this executable that was refused though the program takes it for made,
// as far as that is known here. With servers that do not keep the order it is awaited.
CUresult BeforeLaunch(ClientSession& session, uint64_t exec);

// Nothing of this executable is known any more: it was updated as a whole, or destroyed.
void ForgetExecChanges(uint64_t exec);

}  // namespace longwire::shim
