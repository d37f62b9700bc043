// The software device's PTX compiler: any text gives a program or an error with a sentence.
#include <cstdlib>
#include <map>

#include "softgpu/engine/engine.h"

namespace {

// Globals in plain host memory, bounded so that a huge array is refused as a full device would.
class HostMemory final : public softgpu::ModuleMemory {
 public:
  ~HostMemory() override {
    for (auto& [address, block] : blocks_) std::free(block);
  }
  uint64_t Allocate(uint64_t bytes, uint64_t alignment) override {
    if (bytes > (16u << 20) || alignment > 4096) return 0;
    void* block = std::calloc(1, bytes + 4096);
    const uint64_t address = (reinterpret_cast<uint64_t>(block) + 4095) / 4096 * 4096;
    blocks_[address] = block;
    return address;
  }
  void Free(uint64_t address) override {
    std::free(blocks_[address]);
    blocks_.erase(address);
  }

 private:
  std::map<uint64_t, void*> blocks_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  HostMemory memory;
  softgpu::Status status;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (softgpu::Program::Load(text, memory, &status) == nullptr &&
      (status.ok() || status.message.empty())) {
    std::abort();
  }
  return 0;
}
