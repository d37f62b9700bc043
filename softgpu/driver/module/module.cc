#include "softgpu/driver/module/module.h"

#include <algorithm>
#include <cstring>

#include "softgpu/driver/memory/address_space.h"
#include "softgpu/driver/module/texture_reference.h"

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

void UnloadModule(Module& module) {
  Driver& driver = Driver::Get();
  std::map<Context*, std::shared_ptr<Module>> in_contexts;
  {
    base::MutexLock lock(module.mutex);
    in_contexts.swap(module.in_contexts);
  }
  for (auto& [context, instance] : in_contexts) UnloadModule(*instance);
  for (auto& function : module.functions) driver.functions.Remove(function.get());
  for (auto& reference : module.references) driver.references.Remove(reference.get());
  driver.modules.Remove(&module);
}

}  // namespace softgpu
