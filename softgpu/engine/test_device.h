// For the engine's tests: device memory in the arena, a PTX file as a program, and launches that
// fail the test when they fail.
#pragma once

#include <cstring>
#include <string>
#include <tuple>
#include <vector>

#include "softgpu/engine/engine.h"

#define EXPECT_RUNS(call)                          \
  do {                                             \
    ::softgpu::Status status_ = (call);            \
    ASSERT_EQ(status_.code, 0) << status_.message; \
  } while (false)

namespace softgpu::testing {

class TestMemory final : public ModuleMemory {
 public:
  static TestMemory& Get();
  uint64_t Allocate(uint64_t bytes, uint64_t alignment) override;
  void Free(uint64_t address) override;
  Managed AllocateManaged(uint64_t bytes) override { return {Allocate(bytes, 4096), false}; }

 private:
  uint64_t next_ = 0;
  std::vector<std::pair<uint64_t, uint64_t>> blocks_;
};

// A device array of T, freed at the end; host and device see the same bytes.
template <class T>
class Array {
 public:
  explicit Array(size_t count, T value = T{})
      : count_(count),
        data_(reinterpret_cast<T*>(TestMemory::Get().Allocate(count * sizeof(T), 256))) {
    for (size_t i = 0; i < count; ++i) data_[i] = value;
  }
  ~Array() { TestMemory::Get().Free(address()); }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  T& operator[](size_t i) { return data_[i]; }
  T* data() { return data_; }
  size_t size() const { return count_; }
  uint64_t address() const { return reinterpret_cast<uint64_t>(data_); }

 private:
  size_t count_;
  T* data_;
};

struct Size {
  uint32_t x = 1, y = 1, z = 1;
};

class Device {
 public:
  // "sm_75/basic": a file that the build made from test_kernels/basic.cu.
  explicit Device(const std::string& name);
  explicit Device(std::unique_ptr<Program> program) : program_(std::move(program)) {}
  static std::string ReadPtx(const std::string& name);

  // The kernel whose mangled name contains `name`.
  const KernelInfo& Find(const std::string& name) const;
  const GlobalInfo& FindGlobal(const std::string& name) const;

  template <class... A>
  Status Run(const std::string& kernel, Size grid, Size block, const A&... arguments) const {
    LaunchConfig config;
    config.dynamic_shared_bytes = dynamic_shared_bytes;
    config.cooperative = cooperative;
    std::tie(config.cluster[0], config.cluster[1], config.cluster[2]) =
        std::tie(cluster.x, cluster.y, cluster.z);
    std::tie(config.grid[0], config.grid[1], config.grid[2]) = std::tie(grid.x, grid.y, grid.z);
    std::tie(config.block[0], config.block[1], config.block[2]) =
        std::tie(block.x, block.y, block.z);
    const KernelInfo& info = Find(kernel);
    std::vector<std::byte> parameters(info.parameter_bytes);
    size_t index = 0;
    (Put(info, parameters, index++, arguments), ...);
    return Launch(*info.kernel, config, parameters, cancelled);
  }

  uint32_t dynamic_shared_bytes = 0;
  bool cooperative = false;
  Size cluster = {0, 0, 0};  // none
  std::function<bool()> cancelled;

 private:
  template <class T>
  static void Put(const KernelInfo& info, std::vector<std::byte>& parameters, size_t index,
                  const T& value) {
    std::memcpy(parameters.data() + info.parameters.at(index).offset, &value,
                std::min(sizeof value, info.parameters.at(index).size));
  }
  template <class T>
  static void Put(const KernelInfo& info, std::vector<std::byte>& parameters, size_t index,
                  const Array<T>& value) {
    Put(info, parameters, index, value.address());
  }

  std::unique_ptr<Program> program_;
};

}  // namespace softgpu::testing
