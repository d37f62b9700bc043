// A context's limits, each asked of the server once: they change only when the program sets them,
// but for the stack, which the driver enlarges for kernels that are launched: it is asked for each
// time. cuDNN asks twice for each attention. LONGWIRE_DISABLE=kept-limits asks always.
#pragma once

#include <cuda.h>

#include <cstddef>

namespace longwire::shim {

// Of the calling thread's current context. The driver's code, also of a context that has failed.
CUresult GetLimit(CUlimit limit, size_t* value);
CUresult SetLimit(CUlimit limit, size_t value);

}  // namespace longwire::shim
