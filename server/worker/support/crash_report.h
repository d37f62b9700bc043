// Where the worker was when it died of a signal: mostly somewhere in the driver, which nobody can
// look into afterwards, as workers leave no core.
#pragma once

namespace longwire::worker {

// The stack of the thread that dies goes to the log, a place of code a line: the file's name
// and the offset in it. The process dies as it would have.
void ReportCrashes();
// A pipe: what it still holds then goes to the log, too.
void ReportUnread(int descriptor);

}  // namespace longwire::worker
