// A cache of contexts' limits: cuDNN asks for one twice in each attention, and a limit changes only
// when the program sets it. The stack limit is not cached, as the driver raises it for kernels that
// are launched. LONGWIRE_DISABLE=kept-limits turns the cache off.
#pragma once

#include <cuda.h>

#include <cstddef>

namespace longwire::shim {

// Of the calling thread's current context. The driver's code, or the context's own error.
CUresult GetLimit(CUlimit limit, size_t* value);
CUresult SetLimit(CUlimit limit, size_t value);

}  // namespace longwire::shim
