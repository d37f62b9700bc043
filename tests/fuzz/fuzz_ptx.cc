// The software device's PTX: arbitrary text goes to the loader and, when it loads, its small
// kernels run for a moment.
#include <sys/mman.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "softgpu/engine/engine.h"
#include "softgpu/engine/memory/arena.h"

namespace {

constexpr uint64_t kMaxModuleMemory = uint64_t{64} << 20;  // bytes of device memory per module

// Hands out one range, again for every module.
class FuzzMemory final : public softgpu::ModuleMemory {
 public:
  uint64_t Allocate(uint64_t bytes, uint64_t) override {
    softgpu::Arena& arena = softgpu::Arena::Get();
    uint64_t rounded = (bytes + kGranule - 1) / kGranule * kGranule;
    if (bytes > kMaxModuleMemory || used_ + rounded > kMaxModuleMemory) return 0;
    uint64_t address = arena.base() + used_;
    used_ += rounded;
    if (mmap(reinterpret_cast<void*>(address), rounded, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED) {
      return 0;
    }
    arena.Mark(address, rounded, softgpu::kAllDevices);
    return address;
  }
  void Free(uint64_t) override {}
  Managed AllocateManaged(uint64_t bytes) override { return {Allocate(bytes, kGranule), false}; }

 private:
  static constexpr uint64_t kGranule = softgpu::Arena::kGranule;
  uint64_t used_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  FuzzMemory memory;
  softgpu::Status status;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  auto program = softgpu::Program::Load(text, memory, &status);
  if (program == nullptr) return 0;
  for (const softgpu::KernelInfo& info : program->kernels()) {
    if (info.parameter_bytes > 4096) continue;
    std::vector<std::byte> parameters(info.parameter_bytes);
    softgpu::LaunchConfig config;
    config.block[0] = 33;
    auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
    softgpu::Launch(*info.kernel, config, parameters,
                    [end] { return std::chrono::steady_clock::now() > end; });
  }
  return 0;
}
