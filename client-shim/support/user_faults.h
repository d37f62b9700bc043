// Faults of this process that wait for it (userfaultfd(2)), those of system calls too.
#pragma once

#include "wire/descriptors.h"

namespace longwire::shim {

// Invalid: the system does not let the process. It needs vm.unprivileged_userfaultfd=1, the right
// to open /dev/userfaultfd, or CAP_SYS_PTRACE.
wire::Descriptor OpenUserFaults();

}  // namespace longwire::shim
