// The stack of a worker that dies of a signal, mostly within the driver. Workers leave no core.
#pragma once

namespace longwire::worker {

// From now on the stack of a dying thread goes to the log, a frame on each line: the file's name
// and the offset in it. The process then dies of the signal.
void ReportCrashes();
// What this pipe holds at that time goes to the log, too.
void ReportUnread(int descriptor);

}  // namespace longwire::worker
