#include "softgpu/driver/module.h"

#include <cstring>
#include <fstream>
#include <iterator>

#include "softgpu/driver/address_space.h"
#include "softgpu/driver/fatbin.h"
#include "softgpu/driver/graph.h"
#include "softgpu/driver/jit_log.h"
#include "softgpu/driver/module_load.h"
#include "softgpu/driver/texture.h"

namespace softgpu {

struct ManagedBlock {
  uint64_t address = 0;
  ~ManagedBlock() {
    if (address != 0) AddressSpace::Get().Free(address, MemoryKind::kDevice);
  }
};

namespace {

// Globals belong to the module, not to a context's allocations: they go when the module goes.
class DeviceModuleMemory : public ModuleMemory {
 public:
  DeviceModuleMemory(int device, ManagedBlock& managed) : device_(device), managed_(managed) {}
  uint64_t Allocate(uint64_t bytes, uint64_t alignment) override {
    uint64_t address = AddressSpace::Get().Allocate(device_, bytes, alignment, nullptr);
    if (address != 0) memset(reinterpret_cast<void*>(address), 0, bytes);
    return address;
  }
  void Free(uint64_t address) override { AddressSpace::Get().Free(address, MemoryKind::kDevice); }
  Managed AllocateManaged(uint64_t bytes) override {
    if (managed_.address != 0) return {managed_.address, true};
    managed_.address = AddressSpace::Get().AllocateManaged(bytes, nullptr);
    if (managed_.address != 0) memset(reinterpret_cast<void*>(managed_.address), 0, bytes);
    return {managed_.address, false};
  }

 private:
  const int device_;
  ManagedBlock& managed_;
};

}  // namespace

std::shared_ptr<Module> MakeModule(std::string ptx, int device,
                                   std::shared_ptr<ManagedBlock> managed, Status* status) {
  auto module = std::make_shared<Module>();
  module->device = device;
  module->managed = managed ? std::move(managed) : std::make_shared<ManagedBlock>();
  module->memory = std::make_unique<DeviceModuleMemory>(device, *module->managed);
  module->program = Program::Load(ptx, *module->memory, status);
  if (module->program == nullptr) return nullptr;
  for (const KernelInfo& info : module->program->kernels()) {
    auto function = std::make_unique<Function>();
    function->info = &info;
    function->module = module.get();
    function->index = module->functions.size();
    size_t spare = DeviceShape::kSharedBytesPerBlock -
                   std::min(info.static_shared_bytes, DeviceShape::kSharedBytesPerBlock);
    function->max_dynamic_shared_bytes = static_cast<int>(spare);
    module->functions.push_back(std::move(function));
  }
  for (const ReferenceInfo& info : module->program->references()) {
    auto reference = std::make_shared<TextureReference>();
    reference->surface = info.surface;
    reference->module = module.get();
    module->references.push_back(std::move(reference));
  }
  module->ptx = std::move(ptx);
  return module;
}

Module* PublishModule(std::shared_ptr<Module> module) {
  Driver& driver = Driver::Get();
  for (auto& function : module->functions) driver.functions.Add({module, function.get()});
  for (auto& reference : module->references) driver.references.Add(reference);
  return driver.modules.Add(std::move(module));
}

CUresult LoadModule(const void* image, Context* context, bool library, const JitOptions& jit,
                    Module** loaded) {
  if (image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Watch watch;
  JitLog log(jit.count, jit.options, jit.values);
  std::string ptx, reason;
  CUresult result = ExtractPtx(image, &ptx, &reason);
  std::shared_ptr<Module> module;
  if (result == CUDA_SUCCESS) {
    Context* current = CurrentContext();
    Status status;
    module = MakeModule(std::move(ptx), current ? current->device : 0, nullptr, &status);
    result = module ? CUDA_SUCCESS : static_cast<CUresult>(status.code);
    reason = status.message;
  }
  if (result != CUDA_SUCCESS) {
    Remark("cannot load a code image: %s", reason.c_str());
    log.Write(reason, watch.Milliseconds());
    return result;
  }
  log.Write("", watch.Milliseconds());
  module->library = library;
  module->context = library ? nullptr : context;
  if (!library) module->ptx.clear();
  *loaded = PublishModule(std::move(module));
  return CUDA_SUCCESS;
}

CUresult LoadModuleFile(const char* name, Context* context, bool library, const JitOptions& jit,
                        Module** loaded) {
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::ifstream file(name, std::ios::binary);
  if (!file) return CUDA_ERROR_FILE_NOT_FOUND;
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  return LoadModule(bytes.c_str(), context, library, jit, loaded);
}

void UnloadModule(Module& module) {
  Driver& driver = Driver::Get();
  std::map<Context*, std::shared_ptr<Module>> in_contexts;
  {
    std::lock_guard lock(module.mutex);
    in_contexts.swap(module.in_contexts);
  }
  for (auto& [context, instance] : in_contexts) UnloadModule(*instance);
  for (auto& function : module.functions) driver.functions.Remove(function.get());
  for (auto& reference : module.references) driver.references.Remove(reference.get());
  driver.modules.Remove(&module);
}

}  // namespace softgpu
