// Variables of the environment for code that may run with more rights than its user has: a program
// that is setuid, setgid or has capabilities of its own. There none has a value, for whoever starts
// it chooses them.
#pragma once

#include <sys/auxv.h>

#include <cstdlib>

namespace longwire::base {

// nullptr when it is not set, or not to be trusted.
inline const char* Environment(const char* name) { return secure_getenv(name); }

// False in such a program.
inline bool EnvironmentIsTrusted() { return getauxval(AT_SECURE) == 0; }

}  // namespace longwire::base
