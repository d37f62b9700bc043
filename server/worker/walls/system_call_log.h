// For workers.system_calls: log. The kernel asks about each call that is not on the list; a thread
// lets it through and writes a line, the first time.
#pragma once

namespace longwire::worker {

// Starts the thread, which writes to `log`. Returns a descriptor to which the filter's listener, an
// int, has to be written; -1 with errno.
int StartSystemCallLog(int log);

}  // namespace longwire::worker
