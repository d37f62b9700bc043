// Code images in every form, functions and their attributes, globals, libraries.
#include <cstring>

#include "softgpu/driver/test_device.h"

namespace softgpu {
namespace {

class ModuleTest : public DeviceTest {
 protected:
  CUresult Load(const std::string& file) {
    CUmodule module = nullptr;
    CUresult result = cuModuleLoadData(&module, Kernels(file).c_str());
    if (result == CUDA_SUCCESS) Run(module);
    return result;
  }
  // Checks the loaded code by what it computes.
  void Run(CUmodule module) {
    CUdeviceptr target = 0;
    ASSERT_CU(cuMemAlloc(&target, 16));
    void* parameters[] = {&target};
    ASSERT_CU(cuLaunchKernel(Function(module, "AddTable"), 1, 1, 1, 4, 1, 1, 0, nullptr, parameters,
                             nullptr));
    int values[4] = {};
    ASSERT_CU(cuMemcpyDtoH(values, target, 16));
    EXPECT_EQ(values[0], 17);
    EXPECT_EQ(values[3], 47);
    EXPECT_CU(cuMemFree(target));
    EXPECT_CU(cuModuleUnload(module));
  }
};

TEST_F(ModuleTest, PtxText) { EXPECT_CU(Load("test_kernels.ptx")); }
TEST_F(ModuleTest, FatBinaryWithZstd) { EXPECT_CU(Load("zstd.fatbin")); }
TEST_F(ModuleTest, FatBinaryWithLz4) { EXPECT_CU(Load("lz4.fatbin")); }
TEST_F(ModuleTest, FatBinaryUncompressed) { EXPECT_CU(Load("plain.fatbin")); }

TEST_F(ModuleTest, Wrapper) {
  std::string container = Kernels("zstd.fatbin");
  struct {
    uint32_t magic = 0x466243B1, version = 1;
    const void* container;
    const void* file_name = nullptr;
  } wrapper;
  wrapper.container = container.data();
  CUmodule module = nullptr;
  ASSERT_CU(cuModuleLoadFatBinary(&module, &wrapper));
  Run(module);
}

TEST_F(ModuleTest, ImagesWithoutUsablePtxAreRefused) {
  EXPECT_EQ(Load("too_new.fatbin"), CUDA_ERROR_NO_BINARY_FOR_GPU);
  char log[256] = {};
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  CUmodule module = nullptr;
  EXPECT_EQ(cuModuleLoadDataEx(&module, Kernels("test_kernels.cubin").c_str(), 2, options, values),
            CUDA_ERROR_NO_BINARY_FOR_GPU);
  EXPECT_NE(strstr(log, "code=compute_"), nullptr) << log;
  EXPECT_EQ(reinterpret_cast<size_t>(values[1]), strlen(log));
}

TEST_F(ModuleTest, BadPtxIsRefusedWithItsLine) {
  char log[256] = {};
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  CUmodule module = nullptr;
  const char* ptx = ".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry k( {\n";
  EXPECT_EQ(cuModuleLoadDataEx(&module, ptx, 2, options, values), CUDA_ERROR_INVALID_PTX);
  EXPECT_NE(strstr(log, "4"), nullptr) << log;
}

// What no compiler takes fails the load; what this device lacks fails the launch only.
TEST_F(ModuleTest, WhatIsNoPtxIsRefusedAtOnce) {
  auto load = [](const std::string& text) {
    CUmodule module = nullptr;
    return cuModuleLoadData(&module, text.c_str());
  };
  const std::string head = ".version 8.0\n.target sm_75\n.address_size 64\n";
  auto body = [&](const std::string& line) {
    return head + ".visible .entry k() {\n.reg .b32 %r<4>;\n" + line + "\nret;\n}\n";
  };
  EXPECT_EQ(load("this is no image of any kind"), CUDA_ERROR_INVALID_IMAGE);
  EXPECT_EQ(load(".target sm_75\n.address_size 64\n"), CUDA_ERROR_INVALID_IMAGE);
  EXPECT_EQ(load(".version 99.0\n.target sm_75\n.address_size 64\n"),
            CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
  for (const char* line :
       {"frobnicate.u32 %r1, %r2;", "jabberwock;", "add.foo32 %r1, %r2, %r3;",
        "add.u32 %r1, %r2, %r9;", "add.u32 %r1 %r2 %r3;", "mov.u32 %r1, %nowhere;",
        "ld.global.u32 %r1, [nothing];", "bra nowhere;", "call.uni nobody;"}) {
    EXPECT_EQ(load(body(line)), CUDA_ERROR_INVALID_PTX) << line;
  }
  EXPECT_EQ(load(head + ".extern .func f();\n.visible .entry k() {\ncall.uni f;\nret;\n}\n"),
            CUDA_ERROR_INVALID_PTX);
  EXPECT_CU(load("// a comment\n\n/* another */ " + body("add.u32 %r1, %r2, %r3;")));
  EXPECT_CU(load(head + ".extern .func f();\n.visible .entry k() {\nret;\n}\n"));
}

// Each step of a link says what it found, in the arrays that its creation named.
TEST_F(ModuleTest, ALinkTellsWhatIsMissing) {
  char log[256] = {};
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                            CU_JIT_WALL_TIME};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log), nullptr};
  CUlinkState link = nullptr;
  ASSERT_CU(cuLinkCreate(3, options, values, &link));
  std::string head = ".version 8.0\n.target sm_75\n.address_size 64\n";
  auto add = [&](const std::string& body) {
    std::string text = head + body;
    return cuLinkAddData(link, CU_JIT_INPUT_PTX, text.data(), text.size() + 1, "part", 0, nullptr,
                         nullptr);
  };
  EXPECT_EQ(add(".visible .entry bad() {\njabberwock;\nret;\n}\n"), CUDA_ERROR_INVALID_PTX);
  EXPECT_NE(strstr(log, "jabberwock"), nullptr) << log;
  EXPECT_EQ(reinterpret_cast<size_t>(values[1]), strlen(log));
  EXPECT_NE(values[2], nullptr);
  EXPECT_CU(
      add(".extern .func absent();\n.extern .global .u32 v;\n"
          ".visible .entry k() {\n.reg .b32 %r<2>;\nld.global.u32 %r1, [v];\n"
          "call.uni absent;\nret;\n}\n"));
  EXPECT_CU(add(".visible .global .u32 v = 3;\n"));
  void* image = nullptr;
  EXPECT_EQ(cuLinkComplete(link, &image, nullptr), CUDA_ERROR_UNKNOWN);
  EXPECT_NE(strstr(log, "absent"), nullptr) << log;
  EXPECT_CU(cuLinkDestroy(link));
}

TEST_F(ModuleTest, GlobalsAndNames) {
  CUmodule module = LoadKernels();
  CUdeviceptr address = 0;
  size_t bytes = 0;
  ASSERT_CU(cuModuleGetGlobal(&address, &bytes, module, "constant_table"));
  EXPECT_EQ(bytes, 16u);
  int values[4] = {};
  ASSERT_CU(cuMemcpyDtoH(values, address, bytes));
  EXPECT_EQ(values[2], 30);
  EXPECT_EQ(cuModuleGetGlobal(&address, &bytes, module, "nothing"), CUDA_ERROR_NOT_FOUND);
  CUfunction function = nullptr;
  EXPECT_EQ(cuModuleGetFunction(&function, module, "nothing"), CUDA_ERROR_NOT_FOUND);
  unsigned count = 0;
  ASSERT_CU(cuModuleGetFunctionCount(&count, module));
  EXPECT_EQ(count, 10u);
  std::vector<CUfunction> functions(count);
  ASSERT_CU(cuModuleEnumerateFunctions(functions.data(), count, module));
  for (CUfunction f : functions) {
    const char* name = nullptr;
    ASSERT_CU(cuFuncGetName(&name, f));
    EXPECT_EQ(Function(module, name), f);
  }
  ASSERT_CU(cuModuleUnload(module));
  EXPECT_EQ(cuModuleGetFunction(&function, module, "Store"), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(ModuleTest, ParametersAndAttributes) {
  CUfunction scale = Function(LoadKernels(), "Scale");
  size_t offset = 0, bytes = 0;
  ASSERT_CU(cuFuncGetParamInfo(scale, 2, &offset, &bytes));
  EXPECT_EQ(offset, 12u);
  EXPECT_EQ(bytes, 4u);
  EXPECT_EQ(cuFuncGetParamInfo(scale, 3, &offset, &bytes), CUDA_ERROR_INVALID_VALUE);
  int value = 0;
  ASSERT_CU(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, scale));
  EXPECT_EQ(value, 1024);
  // What it was written for, and what it was compiled for: not the version of the language.
  ASSERT_CU(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_PTX_VERSION, scale));
  EXPECT_EQ(value, 75);
  ASSERT_CU(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_BINARY_VERSION, scale));
  EXPECT_EQ(value, 90);
  ASSERT_CU(cuFuncSetAttribute(scale, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100000));
  ASSERT_CU(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, scale));
  EXPECT_EQ(value, 100000);
  EXPECT_EQ(cuFuncSetAttribute(scale, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1 << 20),
            CUDA_ERROR_INVALID_VALUE);
}

TEST_F(ModuleTest, LibrariesNeedNoContextAndKernelsAreFunctions) {
  ASSERT_CU(cuCtxSetCurrent(nullptr));
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  ASSERT_CU(cuLibraryLoadData(&library, Kernels("zstd.fatbin").c_str(), nullptr, nullptr, 0,
                              nullptr, nullptr, 0));
  ASSERT_CU(cuLibraryGetKernel(&kernel, library, "Store"));
  ASSERT_CU(cuCtxSetCurrent(context_));
  CUdeviceptr target = 0;
  ASSERT_CU(cuMemAlloc(&target, 4));
  unsigned value = 123, back = 0;
  void* parameters[] = {&target, &value};
  ASSERT_CU(cuLaunchKernel(reinterpret_cast<CUfunction>(kernel), 1, 1, 1, 1, 1, 1, 0, nullptr,
                           parameters, nullptr));
  ASSERT_CU(cuMemcpyDtoH(&back, target, 4));
  EXPECT_EQ(back, 123u);
  CUlibrary owner = nullptr;
  EXPECT_CU(cuKernelGetLibrary(&owner, kernel));
  EXPECT_EQ(owner, library);
  EXPECT_EQ(cuModuleUnload(reinterpret_cast<CUmodule>(library)), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_CU(cuLibraryUnload(library));
}

TEST_F(ModuleTest, AnUnloadedModuleIsKeptByQueuedLaunches) {
  CUmodule module = LoadKernels();
  CUstream stream = NewStream();
  auto* flag = NewFlag();
  CUdeviceptr target = 0;
  ASSERT_CU(cuMemAlloc(&target, 16));
  ASSERT_CU(cuStreamWaitValue32(stream, Address(flag), 1, 0));
  void* parameters[] = {&target};
  ASSERT_CU(cuLaunchKernel(Function(module, "AddTable"), 1, 1, 1, 4, 1, 1, 0, stream, parameters,
                           nullptr));
  ASSERT_CU(cuModuleUnload(module));
  __atomic_store_n(const_cast<uint32_t*>(flag), 1, __ATOMIC_RELEASE);
  ASSERT_CU(cuStreamSynchronize(stream));
  int value = 0;
  ASSERT_CU(cuMemcpyDtoH(&value, target, 4));
  EXPECT_EQ(value, 17);
}

}  // namespace
}  // namespace softgpu
