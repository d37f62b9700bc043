// A link at run time.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "softgpu/driver/module/jit_log.h"

namespace softgpu {

struct Link {
  int device = 0;
  JitLog log;
  std::vector<std::string> inputs;  // PTX
  std::optional<std::string> completed;
};

}  // namespace softgpu
