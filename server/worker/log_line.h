// One line for the worker's log (standard error; standard output belongs to device printf).
#pragma once

namespace longwire::worker {

void LogLine(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace longwire::worker
