// longwire trace -o: writes what the recorder noted and what the worker measured into a file, while
// the program runs and when it ends.
#pragma once

#include "client-shim/session/session.h"

namespace longwire::shim {

// Begins to trace, if LONGWIRE_TRACE_FILE names a file. After the session has started.
void StartTrace();
// Writes what is left, and waits a moment for what the device has not finished. At exit.
void EndTrace();

}  // namespace longwire::shim
