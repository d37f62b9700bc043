// Logs the stack of a worker that a signal kills, mostly within the driver. Workers write no core.
#pragma once

namespace longwire::worker {

// From now on the stack of a crashing thread goes to the log, a frame on each line: the file's name
// and the offset in it. The process then dies of the signal.
void ReportCrashes();
// Of the calling thread, too, if its stack overflows. ReportCrashes does so for its own.
void ReportOverflows();
// The contents of this pipe at that time go to the log, too.
void ReportUnread(int descriptor);

}  // namespace longwire::worker
