// A loaded module: its functions as code, its variables in device memory.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "softgpu/engine/engine.h"
#include "softgpu/engine/lower/lower.h"
#include "softgpu/engine/memory/device_heap.h"
#include "softgpu/engine/ptx/ptx.h"
#include "softgpu/engine/run/code.h"

namespace softgpu {

class ProgramImpl final : public Program, public CodeModule {
 public:
  explicit ProgramImpl(ModuleMemory& memory, bool is_part = false)
      : memory_(memory), heap_(memory), is_part_(is_part) {}
  ~ProgramImpl() override;

  std::span<const KernelInfo> kernels() const override { return kernel_infos_; }
  std::span<const GlobalInfo> globals() const override { return global_infos_; }
  std::span<const ReferenceInfo> references() const override { return reference_infos_; }
  std::span<const GlobalInfo> unified_functions() const override { return unified_infos_; }

  Status Build(std::string_view ptx);  // throws PtxError

  const CodeFunction* FindFunction(uint64_t handle) const override;
  const Kernel* FindKernel(uint64_t handle) const override;
  DeviceHeap& heap() const override { return heap_; }

 private:
  // Offsets in shared memory: variables that device functions use come first and lie at the same
  // place in every kernel; a kernel's own follow.
  struct SharedLayout {
    uint64_t common_bytes = 0;
    std::vector<std::pair<std::string_view, uint64_t>> kernel_bytes;
  };

  void DeclareFunctions(const PtxModule& module);
  void DeclareReferences(const PtxModule& module);
  bool PlaceVariables(const PtxModule& module);
  bool PlaceVariables(const PtxModule& module, Space space, bool managed);
  void FillVariables(const PtxModule& module);
  void PlaceShared(const PtxModule& module);
  void CheckReferences(const PtxFunction& source) const;
  void LowerFunctions(const PtxModule& module);
  void ListKernels(const PtxModule& module);

  ModuleMemory& memory_;
  mutable DeviceHeap heap_;
  const bool is_part_;            // of a link that is still to come: what it lacks is no error
  std::vector<uint64_t> blocks_;  // from memory_
  bool managed_filled_ = false;   // by another module of the same library
  std::string text_;
  SymbolTable symbols_;
  std::vector<uint64_t> shared_bytes_;  // static shared memory by function index
  std::vector<std::unique_ptr<CodeFunction>> functions_;
  std::vector<std::unique_ptr<Kernel>> kernels_;
  std::vector<KernelInfo> kernel_infos_;
  std::vector<GlobalInfo> global_infos_;
  std::vector<ReferenceInfo> reference_infos_;
  std::vector<GlobalInfo> unified_infos_;
};

}  // namespace softgpu
