// The seam between the two halves of the software device: `engine/` parses PTX and runs kernels;
// `driver/` is the CUDA driver API in front of it (contexts, streams, memory, modules, graphs).
// The engine knows nothing of streams or contexts; the driver half knows nothing of PTX.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace softgpu {

// A failure with the CUresult value that a driver would give and a sentence for people, naming the
// PTX line and opcode where there is one. code 0 means success.
struct Status {
  int code = 0;
  std::string message;
  bool ok() const { return code == 0; }
};

// Memory for a module's variables: granule-aligned blocks in the arena, zeroed.
class ModuleMemory {
 public:
  struct Managed {
    uint64_t address = 0;  // 0 when out of memory
    bool filled = false;   // another module has given the variables their first values
  };
  virtual ~ModuleMemory() = default;
  virtual uint64_t Allocate(uint64_t bytes, uint64_t alignment) = 0;  // 0 when out of memory
  virtual void Free(uint64_t address) = 0;
  // The one block of the module's managed variables, which goes with this object.
  virtual Managed AllocateManaged(uint64_t bytes) = 0;
};

struct ParameterInfo {
  size_t offset = 0;  // bytes from the start of the packed parameter buffer
  size_t size = 0;    // bytes
};

struct TextureView;  // texture.h

class Kernel;  // opaque to the driver half; owned by its Program

struct KernelInfo {
  std::string name;  // mangled, as in the PTX
  const Kernel* kernel = nullptr;
  std::vector<ParameterInfo> parameters;
  size_t parameter_bytes = 0;
  size_t static_shared_bytes = 0;
  size_t local_bytes_per_thread = 0;
  int registers_per_thread = 0;      // an estimate, at least 1, at most 255
  int max_threads_per_block = 1024;  // .maxntid product or 1024
  int target = 0;                    // the architecture it was written for, e.g. 75
  uint32_t cluster[3] = {};          // blocks of its clusters (.reqnctapercluster); 0: any
  bool needs_cluster = false;        // .explicitcluster: kernel or launch must say them
  uint32_t most_cluster_blocks = 0;  // .maxclusterrank; 0: as the device
  std::string unsupported;  // why it cannot be launched, with the PTX line; empty if it can
};

struct GlobalInfo {
  std::string name;
  uint64_t address = 0;
  size_t bytes = 0;
  bool constant = false;
  bool managed = false;
};

// A texture or surface that the module names, to be bound before a launch.
struct ReferenceInfo {
  std::string name;
  bool surface = false;
};

// One PTX module, parsed and with its globals placed and initialised in device memory.
class Program {
 public:
  virtual ~Program() = default;
  virtual std::span<const KernelInfo> kernels() const = 0;
  virtual std::span<const GlobalInfo> globals() const = 0;
  virtual std::span<const ReferenceInfo> references() const = 0;
  // Names and addresses of the device functions whose addresses the program may ask for.
  virtual std::span<const GlobalInfo> unified_functions() const = 0;
  // Parses `ptx` (NUL-terminated or not). On failure returns nullptr and fills `status`
  // (CUDA_ERROR_INVALID_PTX = 218 with the line, CUDA_ERROR_INVALID_IMAGE = 200 if it is none). An
  // instruction of PTX that is not known here fails only the kernel that holds it: its Launch
  // answers CUDA_ERROR_NOT_SUPPORTED (801) with line and opcode.
  static std::unique_ptr<Program> Load(std::string_view ptx, ModuleMemory& memory, Status* status);
  // What is wrong with a text that is to be linked with others, which define what it lacks.
  static Status CheckPart(std::string_view ptx);
};

struct LaunchConfig {
  uint32_t grid[3] = {1, 1, 1};
  uint32_t block[3] = {1, 1, 1};
  uint32_t dynamic_shared_bytes = 0;
  bool cooperative = false;  // all blocks resident at once; grid sync works
  int device = 0;            // 0 to 63: whose access to memory the kernel has
  uint32_t cluster[3] = {};  // blocks; zeros: as the kernel says, or none
  // What the module's references stand for, in their order; null: nothing is bound.
  std::vector<std::shared_ptr<const TextureView>> references = {};
};

// Fills in the cluster that the kernel wants where the launch asks for none. Answers
// CUDA_ERROR_INVALID_CLUSTER_SIZE (912) if the two differ, one is missing or has too many blocks,
// or if the grid is no multiple of it.
Status ResolveCluster(const Kernel& kernel, LaunchConfig* config);

// Runs the kernel to its end on the calling thread and the engine's worker threads; several calls
// may run at once from several threads, and each makes progress while others spin. `parameters` is
// the packed buffer as long as KernelInfo::parameter_bytes. `cancelled`, if given, is polled so
// that a device reset can end a kernel that never returns. A bad access returns 700, a trap 719, an
// assertion 710, a misaligned access 716, an instruction budget that ran out 702. What the kernel
// launches has run, too, when this returns; `most_pending` of it may be there at once. Kernels of
// different contexts of a device take turns, as on hardware.
constexpr uint32_t kPendingLaunches = 2048;
Status Launch(const Kernel& kernel, const LaunchConfig& config,
              std::span<const std::byte> parameters, const std::function<bool()>& cancelled = {},
              uint32_t most_pending = kPendingLaunches, const void* context = nullptr);

// How many blocks of a cooperative launch can be resident at once with this many threads and this
// much shared memory per block (the device's multiprocessor count times blocks per multiprocessor).
struct DeviceShape {
  static constexpr int kMultiprocessors = 16;
  static constexpr int kMaxThreadsPerMultiprocessor = 2048;
  static constexpr int kMaxBlocksPerMultiprocessor = 32;
  static constexpr size_t kSharedBytesPerMultiprocessor = 228 << 10;
  static constexpr size_t kSharedBytesPerBlock = 48 << 10;
  static constexpr size_t kSharedBytesPerBlockOptin = 227 << 10;
  static constexpr uint32_t kReservedSharedBytes = 1024;  // per block, for the system
  static constexpr uint32_t kPortableClusterBlocks = 8;
  static constexpr uint32_t kMaxClusterBlocks = 16;
  static constexpr int kComputeMajor = 9;
  static constexpr int kComputeMinor = 0;
};

}  // namespace softgpu
