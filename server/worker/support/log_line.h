// Lines for the worker's log: what standard error was when the process began. Later the two
// standard descriptors belong to the driver's text for the program (text_pipes.h).
#pragma once

namespace longwire::worker {

// Gives the log a descriptor of its own. Before that, lines go to standard error.
void KeepLog();
int LogDescriptor();
void LogLine(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace longwire::worker
