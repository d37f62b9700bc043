// Modules and libraries, which are one thing here, and their functions, which serve as kernels too:
// a CUkernel is accepted wherever a CUfunction is. A library has globals of its own in each context
// that uses it, so it has a module there; the first one on its device is the library itself. Its
// managed variables are the same ones in all contexts, and outlive them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "softgpu/driver/state/driver.h"
#include "softgpu/engine/engine.h"

namespace softgpu {

struct Function {
  const KernelInfo* info = nullptr;
  Module* module = nullptr;
  size_t index = 0;  // in its module
  std::atomic<int> max_dynamic_shared_bytes{DeviceShape::kSharedBytesPerBlock};
  std::atomic<int> carve_out{-1};         // percent, a hint that is only remembered
  std::atomic<int> cluster[3] = {};       // blocks that the program set, 0: none
  std::atomic<bool> non_portable{false};  // more of them than every device has
  std::atomic<int> cluster_policy{0};     // a hint that is only remembered
};

struct ManagedBlock;  // of a module's managed variables

struct Module {
  Context* context = nullptr;  // null for a library: it outlives contexts
  bool library = false;
  bool of_library = false;                // a library's module in a context
  int device = 0;                         // where its globals are
  std::shared_ptr<ManagedBlock> managed;  // a library's modules have the library's
  std::unique_ptr<ModuleMemory> memory;
  std::unique_ptr<Program> program;  // freed before `memory`
  std::vector<std::unique_ptr<Function>> functions;
  std::vector<std::shared_ptr<TextureReference>> references;  // as the program lists them

  // Of a library only.
  std::string ptx;
  base::Mutex mutex{base::ranks::kSoftgpuModule};
  // Whether a context has got the library's own globals, and which; null when that is gone.
  bool own_used LONGWIRE_GUARDED_BY(mutex) = false;
  Context* own_user LONGWIRE_GUARDED_BY(mutex) = nullptr;
  // The library's modules in all other contexts that use it.
  std::map<Context*, std::shared_ptr<Module>> in_contexts LONGWIRE_GUARDED_BY(mutex);
};

// Parses the text and places its globals in the device's memory; null with `status` on failure.
// `managed`: of a module that was made from the same text; null for a block of its own.
std::shared_ptr<Module> MakeModule(std::string ptx, int device,
                                   std::shared_ptr<ManagedBlock> managed, Status* status);
// Puts a module and its functions into the handle tables.
Module* PublishModule(std::shared_ptr<Module> module);
// Takes the module and its functions out of the handle tables, a library's modules with it.
// Launches that are queued keep it.
void UnloadModule(Module& module);

// library.cc: what a library and its kernels are in a context; other modules and functions are the
// same everywhere. INVALID_HANDLE for a function of another context.
CUresult InContext(Module& library, Context& context, Module** module);
CUresult InContext(std::shared_ptr<Function>* function, Context& context);
// The context is gone, and its modules with it.
void ForgetInLibraries(Context& context);
// Calls `change` for a function and, if it is a kernel, for what it is in the contexts.
void ForEachForm(Function& function, const std::function<void(Function&)>& change);

inline std::shared_ptr<Function> FindFunction(const void* handle) {
  return Driver::Get().functions.Find(handle);
}

}  // namespace softgpu
