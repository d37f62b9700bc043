// A sentence for programs whose kernels perhaps wait for what mirrors cannot give them.
#pragma once

namespace longwire::shim {

// Watches from now on, until it has said the sentence: when work has run for some seconds, the
// program has queued nothing meanwhile and has written to pinned memory that is mirrored. A kernel
// that waits for that write waits for ever. Kernels that poll no memory look the same if the
// program prepares their successors' input there, so it is said once, as what may be.
void WatchForWaitingKernels();

}  // namespace longwire::shim
