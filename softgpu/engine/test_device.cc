#include "softgpu/engine/test_device.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "softgpu/engine/memory/arena.h"
#include "softgpu/engine/mutex.h"

namespace softgpu::testing {
namespace {

base::Mutex memory_mutex;

}  // namespace

TestMemory& TestMemory::Get() {
  static TestMemory& memory = *new TestMemory;
  return memory;
}

uint64_t TestMemory::Allocate(uint64_t bytes, uint64_t) {
  base::MutexLock lock(memory_mutex);
  Arena& arena = Arena::Get();
  if (next_ == 0) next_ = arena.base() + Arena::kGranule;
  bytes = (std::max<uint64_t>(bytes, 1) + Arena::kGranule - 1) / Arena::kGranule * Arena::kGranule;
  uint64_t address = next_;
  next_ += bytes + Arena::kGranule;  // a hole after each block
  void* p = mmap(reinterpret_cast<void*>(address), bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  if (p == MAP_FAILED) return 0;
  arena.Mark(address, bytes, kAllDevices);
  blocks_.emplace_back(address, bytes);
  return address;
}

void TestMemory::Free(uint64_t address) {
  base::MutexLock lock(memory_mutex);
  auto it = std::find_if(blocks_.begin(), blocks_.end(),
                         [&](const auto& block) { return block.first == address; });
  if (it == blocks_.end()) return;
  Arena::Get().Mark(address, it->second, 0);
  EXPECT_NE(mmap(reinterpret_cast<void*>(address), it->second, PROT_NONE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0),
            MAP_FAILED);
  blocks_.erase(it);
}

std::string Device::ReadPtx(const std::string& name) {
  std::ifstream file(std::string(SOFTGPU_TEST_PTX) + "/" + name + ".ptx");
  EXPECT_TRUE(file) << "no " << name;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

Device::Device(const std::string& name) {
  Status status;
  program_ = Program::Load(ReadPtx(name), TestMemory::Get(), &status);
  if (program_ == nullptr) throw std::runtime_error(name + ": " + status.message);
}

const KernelInfo& Device::Find(const std::string& name) const {
  for (const KernelInfo& info : program_->kernels()) {
    // Mangled names hold "<length>name".
    if (info.name == name) return info;
    if (info.name.find(std::to_string(name.size()) + name) != std::string::npos) return info;
  }
  throw std::runtime_error("no kernel " + name);
}

const GlobalInfo& Device::FindGlobal(const std::string& name) const {
  for (const GlobalInfo& info : program_->globals()) {
    if (info.name == name) return info;
  }
  throw std::runtime_error("no global " + name);
}

}  // namespace softgpu::testing
