// Libraries from files, functions that they tell, modules with options for the compiler, and how
// many blocks of a kernel fit: the block size that fits best, with the program's own function for
// shared memory, and clusters.
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include "driver_fatbin.h"
#include "driver_program.h"

static const char kText[] = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry Store(.param .u64 out, .param .u32 value)
{
  .reg .b32 %r<2>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r1, [value];
  cvta.to.global.u64 %rd2, %rd1;
  st.global.u32 [%rd2], %r1;
  ret;
}
.visible .entry Limited() .maxntid 96, 1, 1 { ret; }
)";
static const char kWrong[] = ".version 7.0\n.target sm_70\n.visible .entry Wrong( { nothing }\n";

static unsigned Stored(CUfunction store, unsigned value) {
  CUdeviceptr out = 0;
  unsigned found = 0;
  CHECK_DRIVER(cuMemAlloc(&out, sizeof found));
  CHECK_DRIVER(cuMemsetD32(out, 0, 1));
  void* parameters[] = {&out, &value};
  CHECK_DRIVER(cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
  CHECK_DRIVER(cuMemcpyDtoH(&found, out, sizeof found));
  CHECK_DRIVER(cuMemFree(out));
  return found;
}

static void FromFile() {
  CUlibrary library = nullptr, other = nullptr;
  const FatbinFile file;
  CHECK_DRIVER(
      cuLibraryLoadFromFile(&library, file.path.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  unsigned count = 0;
  CHECK_DRIVER(cuLibraryGetKernelCount(&count, library));
  EXPECT(count == 1, "%u kernels", count);
  CUkernel kernels[3] = {}, scale = nullptr;
  CHECK_DRIVER(cuLibraryEnumerateKernels(kernels, 3, library));
  CHECK_DRIVER(cuLibraryGetKernel(&scale, library, "Scale"));
  EXPECT(kernels[0] == scale && kernels[1] == nullptr, "the kernels are %p and %p, not %p",
         kernels[0], kernels[1], scale);
  kernels[0] = nullptr;
  CHECK_DRIVER(cuLibraryEnumerateKernels(kernels, 0, library));
  EXPECT(kernels[0] == nullptr, "more kernels than there was room for");
  CUmodule module = nullptr;
  CHECK_DRIVER(cuLibraryGetModule(&module, library));
  RunScale(module);
  EXPECT(cuLibraryEnumerateKernels(nullptr, 1, library) == CUDA_ERROR_INVALID_VALUE, "nowhere");
  EXPECT(cuLibraryEnumerateKernels(kernels, 1, nullptr) == CUDA_ERROR_INVALID_HANDLE, "nothing");
  EXPECT(cuLibraryLoadFromFile(&other, "/nowhere/at.all", nullptr, nullptr, 0, nullptr, nullptr,
                               0) == CUDA_ERROR_FILE_NOT_FOUND,
         "a file that is not there");
  EXPECT(cuLibraryLoadFromFile(&other, nullptr, nullptr, nullptr, 0, nullptr, nullptr, 0) ==
             CUDA_ERROR_INVALID_VALUE,
         "no name");
  CHECK_DRIVER(cuLibraryUnload(library));
  EXPECT_OF_MISTAKE(cuLibraryEnumerateKernels(kernels, 1, library) == CUDA_ERROR_INVALID_HANDLE,
                    "unloaded");
}

static const char kUnified[] = R"(
.version 8.0
.target sm_90
.address_size 64
.visible .func .attribute(.unified(0xAB, 0xCD)) (.param .b32 result) Twice(.param .b32 value)
{
  .reg .b32 %r<3>;
  ld.param.b32 %r1, [value];
  add.s32 %r2, %r1, %r1;
  st.param.b32 [result], %r2;
  ret;
}
.visible .entry Call(.param .u64 function, .param .u64 out)
{
  .reg .b32 %r<3>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [function];
  ld.param.u64 %rd2, [out];
  cvta.to.global.u64 %rd3, %rd2;
  ld.global.u32 %r1, [%rd3];
  {
    .param .b32 value;
    .param .b32 result;
    st.param.b32 [value], %r1;
    prototype: .callprototype (.param .b32 _) _ (.param .b32 _);
    call (result), %rd1, (value), prototype;
    ld.param.b32 %r2, [result];
  }
  st.global.u32 [%rd3], %r2;
  ret;
}
)";

// A function whose address the program gets, for its kernels to call. Only what was linked has
// such.
static void Unified() {
  CUlinkState link = nullptr;
  CHECK_DRIVER(cuLinkCreate(0, nullptr, nullptr, &link));
  void* image = nullptr;
  CUresult result = cuLinkAddData(link, CU_JIT_INPUT_PTX, const_cast<char*>(kUnified),
                                  sizeof kUnified, "unified.ptx", 0, nullptr, nullptr);
  if (result == CUDA_SUCCESS) result = cuLinkComplete(link, &image, nullptr);
  if (result != CUDA_SUCCESS) {  // a device before these
    CHECK_DRIVER(cuLinkDestroy(link));
    return;
  }
  CUlibrary library = nullptr;
  CHECK_DRIVER(cuLibraryLoadData(&library, image, nullptr, nullptr, 0, nullptr, nullptr, 0));
  CHECK_DRIVER(cuLinkDestroy(link));
  void *twice = nullptr, *other = nullptr;
  CHECK_DRIVER(cuLibraryGetUnifiedFunction(&twice, library, "Twice"));
  for (const char* name : {"Call", "Nothing"}) {
    EXPECT(cuLibraryGetUnifiedFunction(&other, library, name) == CUDA_ERROR_NOT_FOUND, "%s", name);
  }
  EXPECT(cuLibraryGetUnifiedFunction(nullptr, library, "Twice") == CUDA_ERROR_INVALID_VALUE, "");
  EXPECT_OF_MISTAKE(
      cuLibraryGetUnifiedFunction(&other, nullptr, "Twice") == CUDA_ERROR_INVALID_HANDLE,
      "nothing");
  CUkernel call = nullptr;
  CUdeviceptr out = 0;
  unsigned value = 0;
  CHECK_DRIVER(cuLibraryGetKernel(&call, library, "Call"));
  CHECK_DRIVER(cuMemAlloc(&out, sizeof value));
  CHECK_DRIVER(cuMemsetD32(out, 21, 1));
  void* parameters[] = {&twice, &out};
  CHECK_DRIVER(cuLaunchKernel(reinterpret_cast<CUfunction>(call), 1, 1, 1, 1, 1, 1, 0, nullptr,
                              parameters, nullptr));
  CHECK_DRIVER(cuMemcpyDtoH(&value, out, sizeof value));
  EXPECT(value == 42, "the function made 21 to %u", value);
  CHECK_DRIVER(cuMemFree(out));
  CHECK_DRIVER(cuLibraryUnload(library));
}

static CUmodule WithOptions() {
  char info[512] = "untouched", error[512] = "";
  CUjit_option options[] = {CU_JIT_MAX_REGISTERS, CU_JIT_INFO_LOG_BUFFER,
                            CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, CU_JIT_ERROR_LOG_BUFFER,
                            CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  const auto number = [](size_t value) { return reinterpret_cast<void*>(value); };
  void* values[] = {number(32), info, number(sizeof info), error, number(sizeof error)};
  CUmodule module = nullptr, wrong = nullptr;
  CHECK_DRIVER(cuModuleLoadDataEx(&module, kText, 5, options, values));
  EXPECT(reinterpret_cast<size_t>(values[4]) < sizeof error, "the error log's size is %p",
         values[4]);
  values[2] = number(sizeof info);
  values[4] = number(sizeof error);
  EXPECT(cuModuleLoadDataEx(&wrong, kWrong, 5, options, values) == CUDA_ERROR_INVALID_PTX, "wrong");
  EXPECT(std::strlen(error) > 10, "the error log says '%s'", error);
  EXPECT(cuModuleLoadDataEx(nullptr, kText, 0, nullptr, nullptr) == CUDA_ERROR_INVALID_VALUE, "");
  EXPECT(cuModuleLoadDataEx(&wrong, nullptr, 0, nullptr, nullptr) == CUDA_ERROR_INVALID_VALUE, "");
  CUfunction store = nullptr;
  CHECK_DRIVER(cuModuleGetFunction(&store, module, "Store"));
  EXPECT(Stored(store, 77) == 77, "the kernel stored %u", Stored(store, 77));
  return module;
}

static size_t CUDA_CB SharedOf(int threads) { return static_cast<size_t>(threads) * 256; }

static void Occupancy(CUmodule module, CUdevice device) {
  CUfunction store = nullptr, limited = nullptr;
  CHECK_DRIVER(cuModuleGetFunction(&store, module, "Store"));
  CHECK_DRIVER(cuModuleGetFunction(&limited, module, "Limited"));
  int processors = 0, grid = 0, block = 0, blocks = 0;
  CHECK_DRIVER(cuDeviceGetAttribute(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device));
  CHECK_DRIVER(cuOccupancyMaxPotentialBlockSizeWithFlags(&grid, &block, store, nullptr, 0, 0, 0));
  CHECK_DRIVER(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, store, block, 0));
  EXPECT(block >= 128 && grid == blocks * processors, "%d blocks of %d, %d fit", grid, block,
         blocks);
  CHECK_DRIVER(cuOccupancyMaxPotentialBlockSizeWithFlags(&grid, &block, store, nullptr, 0, 64,
                                                         CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE));
  EXPECT(block == 64, "limited to 64: %d", block);
  CHECK_DRIVER(cuOccupancyMaxPotentialBlockSizeWithFlags(&grid, &block, limited, nullptr, 0, 0, 0));
  EXPECT(block <= 96, "the kernel takes 96: %d", block);
  // A block of 192 threads has all of the 48 KiB that it may have by itself.
  CHECK_DRIVER(
      cuOccupancyMaxPotentialBlockSizeWithFlags(&grid, &block, store, SharedOf, 0, 192, 0));
  CHECK_DRIVER(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, store, block, SharedOf(block)));
  EXPECT(block > 0 && block <= 192 && grid == blocks * processors, "%d blocks of %d, %d fit", grid,
         block, blocks);
  EXPECT(cuOccupancyMaxPotentialBlockSizeWithFlags(&grid, &block, nullptr, nullptr, 0, 0, 0) ==
             CUDA_ERROR_INVALID_HANDLE,
         "no function");

  CUlaunchConfig launch = {};
  launch.gridDimX = launch.gridDimY = launch.gridDimZ = 1;
  launch.blockDimX = 128;
  launch.blockDimY = launch.blockDimZ = 1;
  CUlaunchAttribute one = {};
  one.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  one.value.clusterDim = {1, 1, 1};
  launch.attrs = &one;
  launch.numAttrs = 1;
  int clusters = 0, size = 0;
  CHECK_DRIVER(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, store, 128, 0));
  CHECK_DRIVER(cuOccupancyMaxActiveClusters(&clusters, store, &launch));
  EXPECT(clusters > 0 && clusters <= blocks * processors, "%d clusters of one block, %d blocks fit",
         clusters, blocks);
  launch.sharedMemBytes = 40 << 10;
  int fewer = 0;
  CHECK_DRIVER(cuOccupancyMaxActiveClusters(&fewer, store, &launch));
  EXPECT(fewer > 0 && fewer < clusters, "with more shared memory %d, not less than %d", fewer,
         clusters);
  CHECK_DRIVER(cuOccupancyMaxPotentialClusterSize(&size, store, &launch));
  EXPECT(size >= 1 && size <= 16, "clusters of %d", size);
  one.value.clusterDim = {1000, 1, 1};
  EXPECT(cuOccupancyMaxActiveClusters(&clusters, store, &launch) != CUDA_SUCCESS, "too large");
  EXPECT(cuOccupancyMaxActiveClusters(&clusters, store, nullptr) == CUDA_ERROR_INVALID_VALUE, "");
  EXPECT(cuOccupancyMaxActiveClusters(nullptr, store, &launch) == CUDA_ERROR_INVALID_VALUE, "");
  EXPECT(cuOccupancyMaxPotentialClusterSize(&size, store, nullptr) == CUDA_ERROR_INVALID_VALUE, "");
  EXPECT(cuOccupancyMaxPotentialClusterSize(&size, nullptr, &launch) == CUDA_ERROR_INVALID_VALUE,
         "no function");
}

int main() {
  CUdevice device = 0;
  CUcontext context = OpenContext(&device);
  FromFile();
  Unified();
  CUmodule module = WithOptions();
  Occupancy(module, device);
  CHECK_DRIVER(cuModuleUnload(module));
  CHECK_DRIVER(cuCtxDestroy(context));
  std::printf("PASS driver_libraries\n");
  return 0;
}
