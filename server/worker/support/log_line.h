// Lines for the worker's log, which is the process's original standard error. Later the standard
// descriptors carry the driver's text for the program (text_pipes.h).
#pragma once

#include <cstdint>

namespace longwire::worker {

// Duplicates standard error for the log. Before that, lines go to standard error itself.
void KeepLog();
int LogDescriptor();
// For the last lines of a process: all are written.
void LiftLogLimit();
// Lines a second of LogLine: ten until this is called.
void SetLogLimit(uint32_t lines_per_second);
// Within that limit; a later line says how many were left out.
void LogLine(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace longwire::worker
