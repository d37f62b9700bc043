// Loading a code image into a module or library.
#pragma once

#include "softgpu/driver/module/module.h"

namespace softgpu {

struct JitOptions {
  unsigned count = 0;
  const CUjit_option* options = nullptr;
  void** values = nullptr;
};

CUresult LoadModule(const void* image, Context* context, bool library, const JitOptions& jit,
                    Module** loaded);
CUresult LoadModuleFile(const char* name, Context* context, bool library, const JitOptions& jit,
                        Module** loaded);

}  // namespace softgpu
