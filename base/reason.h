// Why the system refused something, and what helps: the end of a sentence about it.
#pragma once

#include <string>

namespace longwire::base {

// "No space left on device; free some on that file system". Without a remedy where there is none
// that always helps.
std::string Reason(int error);

// Why no process or thread could be started. There EAGAIN is a limit on their number.
std::string ReasonOfNoThread(int error);

// Prints a sentence and ends the process with kSystemRefused, instead of aborting, when what the
// standard library throws is not caught: no thread can be started, no memory is left. For main.
void SayWhyTerminated(const char* program);
// EX_OSERR of sysexits.h: it says that it is the system's doing.
constexpr int kSystemRefused = 71;

}  // namespace longwire::base
