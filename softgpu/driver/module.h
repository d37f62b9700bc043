// Modules and libraries, which are one thing here, and their functions, which serve as kernels too:
// a CUkernel is accepted wherever a CUfunction is.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "softgpu/driver/driver.h"
#include "softgpu/engine/engine.h"

namespace softgpu {

struct Function {
  const KernelInfo* info = nullptr;
  Module* module = nullptr;
  std::atomic<int> max_dynamic_shared_bytes{DeviceShape::kSharedBytesPerBlock};
  std::atomic<int> carve_out{-1};  // percent, a hint that is only remembered
};

struct Module {
  Context* context = nullptr;  // null for a library: it outlives contexts
  bool library = false;
  std::unique_ptr<ModuleMemory> memory;
  std::unique_ptr<Program> program;  // freed before `memory`
  std::vector<std::unique_ptr<Function>> functions;
};

// Takes the module and its functions out of the handle tables. Launches that are queued keep it.
void UnloadModule(Module& module);

inline std::shared_ptr<Function> FindFunction(const void* handle) {
  return Driver::Get().functions.Find(handle);
}

}  // namespace softgpu
