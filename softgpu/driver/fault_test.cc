// Faults poison the whole process, so each test runs in a process of its own.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>

#include "softgpu/driver/test_device.h"

namespace softgpu {
namespace {

// Ends the process with 0 if every check held.
#define REQUIRE_EQ(a, b)                                                     \
  do {                                                                       \
    int left = (a), right = (b);                                             \
    if (left != right) {                                                     \
      fprintf(stderr, "line %d: %d instead of %d\n", __LINE__, left, right); \
      _exit(1);                                                              \
    }                                                                        \
  } while (false)

CUfunction Prepare(const char* name) {
  REQUIRE_EQ(cuInit(0), 0);
  CUcontext context = nullptr;
  REQUIRE_EQ(cuDevicePrimaryCtxRetain(&context, 0), 0);
  REQUIRE_EQ(cuCtxSetCurrent(context), 0);
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  REQUIRE_EQ(cuModuleLoadData(&module, Kernels("test_kernels.ptx").c_str()), 0);
  REQUIRE_EQ(cuModuleGetFunction(&function, module, name), 0);
  return function;
}

class FaultTest : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

void IllegalAddress(CUfunction store) {
  CUcontext primary = nullptr, other = nullptr;
  REQUIRE_EQ(cuCtxGetCurrent(&primary), 0);
  REQUIRE_EQ(cuCtxCreate_v4(&other, nullptr, 0, 0), 0);
  CUstream waiting = nullptr;
  REQUIRE_EQ(cuStreamCreate(&waiting, CU_STREAM_NON_BLOCKING), 0);
  void* flag = nullptr;
  REQUIRE_EQ(cuMemHostAlloc(&flag, 4, 0), 0);
  REQUIRE_EQ(cuStreamWaitValue32(waiting, reinterpret_cast<CUdeviceptr>(flag), 1, 1), 0);
  std::atomic<int> told{0};
  REQUIRE_EQ(
      cuStreamAddCallback(
          waiting, [](CUstream, CUresult r, void* d) { *static_cast<std::atomic<int>*>(d) = r; },
          &told, 0),
      0);
  std::atomic<bool> called{false};
  REQUIRE_EQ(cuLaunchHostFunc(
                 waiting, [](void* d) { *static_cast<std::atomic<bool>*>(d) = true; }, &called),
             0);
  REQUIRE_EQ(cuCtxSetCurrent(primary), 0);
  CUdeviceptr wild = 0xdead0000;
  unsigned value = 1;
  void* parameters[] = {&wild, &value};
  REQUIRE_EQ(cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr), 0);
  REQUIRE_EQ(cuStreamSynchronize(nullptr), CUDA_ERROR_ILLEGAL_ADDRESS);
  // Sticky, for every context of the process, and nothing stays stuck.
  REQUIRE_EQ(cuStreamSynchronize(waiting), CUDA_ERROR_ILLEGAL_ADDRESS);
  CUdeviceptr memory = 0;
  REQUIRE_EQ(cuMemAlloc(&memory, 16), CUDA_ERROR_ILLEGAL_ADDRESS);
  REQUIRE_EQ(cuCtxSetCurrent(other), CUDA_ERROR_ILLEGAL_ADDRESS);
  REQUIRE_EQ(cuDevicePrimaryCtxReset(0), CUDA_ERROR_ILLEGAL_ADDRESS);
  Pause();
  REQUIRE_EQ(told.load(), CUDA_ERROR_ILLEGAL_ADDRESS);
  REQUIRE_EQ(called.load(), false);
  _exit(0);
}

TEST_F(FaultTest, AnIllegalAddressLatches) {
  EXPECT_EXIT(IllegalAddress(Prepare("Store")), testing::ExitedWithCode(0), "error 700");
}

void UnmappedWhileQueued(CUfunction) {
  CUdeviceptr at = 0;
  auto properties = ChunkProperties();
  auto access = ReadWrite();
  CUmemGenericAllocationHandle handle = 0;
  REQUIRE_EQ(cuMemAddressReserve(&at, kChunk, 0, 0, 0), 0);
  REQUIRE_EQ(cuMemCreate(&handle, kChunk, &properties, 0), 0);
  REQUIRE_EQ(cuMemMap(at, kChunk, 0, handle, 0), 0);
  REQUIRE_EQ(cuMemSetAccess(at, kChunk, &access, 1), 0);
  void* flag = nullptr;
  REQUIRE_EQ(cuMemHostAlloc(&flag, 4, 0), 0);
  REQUIRE_EQ(cuStreamWaitValue32(nullptr, reinterpret_cast<CUdeviceptr>(flag), 1, 1), 0);
  REQUIRE_EQ(cuMemsetD8Async(at, 1, kChunk, nullptr), 0);
  REQUIRE_EQ(cuMemUnmap(at, kChunk), 0);
  __atomic_store_n(static_cast<uint32_t*>(flag), 1, __ATOMIC_RELEASE);
  REQUIRE_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  _exit(0);
}

TEST_F(FaultTest, WorkOnMemoryThatWasUnmappedFaults) {
  EXPECT_EXIT(UnmappedWhileQueued(Prepare("Store")), testing::ExitedWithCode(0), "no longer");
}

void MisalignedStore(CUfunction store) {
  CUdeviceptr target = 0;
  REQUIRE_EQ(cuMemAlloc(&target, 16), 0);
  target += 2;
  unsigned value = 1;
  void* parameters[] = {&target, &value};
  REQUIRE_EQ(cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr), 0);
  REQUIRE_EQ(cuCtxSynchronize(), CUDA_ERROR_MISALIGNED_ADDRESS);
  _exit(0);
}

TEST_F(FaultTest, AMisalignedAddressLatches) {
  EXPECT_EXIT(MisalignedStore(Prepare("Store")), testing::ExitedWithCode(0), "error 716");
}

// An instruction that the interpreter does not know: its launch and its graph node are refused, and
// nothing is poisoned.
void UnknownInstruction() {
  Prepare("Store");
  const char* ptx =
      ".version 8.0\n.target sm_75\n.address_size 64\n"
      ".visible .entry Odd()\n{\n  .reg .b32 %r<5>;\n"
      "  vavrg4.u32.u32.u32 %r1, %r2, %r3, %r4;\n  ret;\n}\n"
      ".visible .entry Fine()\n{\n  ret;\n}\n";
  CUmodule module = nullptr;
  CUfunction odd = nullptr, fine = nullptr;
  REQUIRE_EQ(cuModuleLoadData(&module, ptx), 0);
  REQUIRE_EQ(cuModuleGetFunction(&odd, module, "Odd"), 0);
  REQUIRE_EQ(cuModuleGetFunction(&fine, module, "Fine"), 0);
  REQUIRE_EQ(cuLaunchKernel(odd, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr),
             CUDA_ERROR_NOT_SUPPORTED);
  REQUIRE_EQ(cuLaunchCooperativeKernel(odd, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr),
             CUDA_ERROR_NOT_SUPPORTED);
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  CUDA_KERNEL_NODE_PARAMS launch = {};
  launch.func = odd;
  launch.gridDimX = launch.gridDimY = launch.gridDimZ = 1;
  launch.blockDimX = launch.blockDimY = launch.blockDimZ = 1;
  REQUIRE_EQ(cuGraphCreate(&graph, 0), 0);
  REQUIRE_EQ(cuGraphAddKernelNode(&node, graph, nullptr, 0, &launch), CUDA_ERROR_NOT_SUPPORTED);
  REQUIRE_EQ(cuCtxSynchronize(), 0);
  REQUIRE_EQ(cuLaunchKernel(fine, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr), 0);
  REQUIRE_EQ(cuCtxSynchronize(), 0);
  _exit(0);
}

TEST_F(FaultTest, AnUnknownInstructionIsRefused) {
  EXPECT_EXIT(UnknownInstruction(), testing::ExitedWithCode(0), "vavrg4");
}

void ForkedChild() {
  Prepare("Store");
  if (fork() == 0) {
    CUdeviceptr memory = 0;
    size_t free = 0, total = 0;
    bool refused = cuInit(0) == CUDA_ERROR_NOT_INITIALIZED &&
                   cuMemAlloc(&memory, 4) == CUDA_ERROR_NOT_INITIALIZED &&
                   cuMemGetInfo(&free, &total) == CUDA_ERROR_NOT_INITIALIZED;
    _exit(refused ? 0 : 1);
  }
  int status = 0;
  wait(&status);
  REQUIRE_EQ(status, 0);
  REQUIRE_EQ(cuCtxSynchronize(), 0);
  _exit(0);
}

TEST_F(FaultTest, AForkedChildIsNotInitialized) {
  EXPECT_EXIT(ForkedChild(), testing::ExitedWithCode(0), "");
}

void BeforeInit() {
  int count = 0;
  REQUIRE_EQ(cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
  REQUIRE_EQ(cuInit(0), 0);
  REQUIRE_EQ(cuDeviceGetCount(&count), 0);
  CUdeviceptr memory = 0;
  REQUIRE_EQ(cuMemAlloc(&memory, 4), CUDA_ERROR_INVALID_CONTEXT);
  _exit(0);
}

TEST_F(FaultTest, NothingWorksBeforeInit) {
  EXPECT_EXIT(BeforeInit(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace softgpu
