// The mutexes of base/ and their ranks, which give the order in which a thread takes them.
#pragma once

#include "base/lock_ranks.h"
#include "base/mutex.h"

namespace softgpu {

namespace base = longwire::base;

}  // namespace softgpu
