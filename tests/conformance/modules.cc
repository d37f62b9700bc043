// Modules, libraries, kernels and their attributes, launches.
#include <cstring>

#include "check.h"

namespace conformance {
namespace {

void FunctionAttributes(CUfunction function) {
  for (int i = 0; i < CU_FUNC_ATTRIBUTE_MAX; ++i) {
    int value = -1;
    const CUresult result =
        cuFuncGetAttribute(&value, static_cast<CUfunction_attribute>(i), function);
    // How many registers and bytes of code: each compiler for itself.
    const bool own = i == CU_FUNC_ATTRIBUTE_NUM_REGS || i == CU_FUNC_ATTRIBUTE_BINARY_VERSION;
    std::printf("function attribute %d = code %d value %d\n", i, result, own ? 0 : value);
  }
  CODE(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 60000));
  CODE(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1 << 30));
  CODE(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_NUM_REGS, 10));
  CODE(cuFuncSetCacheConfig(function, CU_FUNC_CACHE_PREFER_SHARED));
  CODE(cuFuncSetCacheConfig(function, static_cast<CUfunc_cache>(9)));
  CODE(cuFuncSetSharedMemConfig(function, CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE));
  size_t offset = 0, bytes = 0;
  for (size_t i = 0; i < 4; ++i) {
    CODE(cuFuncGetParamInfo(function, i, &offset, &bytes));
    VALUE(offset);
    VALUE(bytes);
  }
  const char* name = nullptr;
  CODE(cuFuncGetName(&name, function));
  TEXT(name == nullptr ? "" : name);
  CUfunctionLoadingState state;
  CODE(cuFuncLoad(function));
  CODE(cuFuncIsLoaded(&state, function));
  VALUE(state);
  CUmodule module = nullptr;
  CODE(cuFuncGetModule(&module, function));
  VALUE(module != nullptr);
}

void Launches(CUmodule module) {
  CUfunction fill = nullptr, add = nullptr, nothing = nullptr;
  CODE(cuModuleGetFunction(&fill, module, "Fill"));
  CODE(cuModuleGetFunction(&add, module, "Add"));
  CODE(cuModuleGetFunction(&nothing, module, "Nothing"));
  CODE(cuModuleGetFunction(&nothing, module, "nothing"));
  CODE(cuModuleGetFunction(nullptr, module, "Fill"));
  FunctionAttributes(fill);
  CUdeviceptr memory = 0;
  CODE(cuMemAlloc(&memory, 4096));
  CODE(Launch(fill, 4, 256, nullptr, memory, 5));
  CODE(Launch(add, 4, 256, nullptr, memory, 7));
  VALUE(DigestOf(memory, 4096));
  CODE(Launch(fill, 0, 256, nullptr, memory, 5));
  CODE(Launch(fill, 4, 0, nullptr, memory, 5));
  CODE(Launch(fill, 4, 1025, nullptr, memory, 5));
  CODE(Launch(nullptr, 4, 32, nullptr, memory, 5));
  void* parameters[] = {&memory, &memory};
  CODE(cuLaunchKernel(fill, 1, 65536, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
  CODE(cuLaunchKernel(fill, 1, 1, 1, 1, 1, 65, 0, nullptr, parameters, nullptr));
  CODE(cuLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 1 << 20, nullptr, parameters, nullptr));
  CODE(cuLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  CODE(cuLaunchKernel(nothing, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  CUlaunchConfig config = {};
  config.gridDimX = config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = 64;
  config.blockDimY = config.blockDimZ = 1;
  unsigned value = 3;
  void* both[] = {&memory, &value};
  CODE(cuLaunchKernelEx(&config, fill, both, nullptr));
  CODE(cuLaunchCooperativeKernel(fill, 1, 1, 1, 64, 1, 1, 0, nullptr, both));
  CODE(cuLaunchCooperativeKernel(fill, 1 << 20, 1, 1, 64, 1, 1, 0, nullptr, both));
  CUlaunchAttribute cooperative = {};
  cooperative.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  cooperative.value.cooperative = 1;
  config.attrs = &cooperative;
  config.numAttrs = 1;
  config.gridDimX = 1 << 20;
  CODE(cuLaunchKernelEx(&config, fill, both, nullptr));
  CODE(cuCtxSynchronize());
  VALUE(DigestOf(memory, 256));
  int blocks = 0, size = 0;
  CODE(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, fill, 128, 0));
  VALUE(blocks > 0);
  CODE(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, fill, 0, 0));
  CODE(cuOccupancyMaxPotentialBlockSize(&blocks, &size, fill, nullptr, 0, 0));
  VALUE(size);
  size_t dynamic = 0;
  CODE(cuOccupancyAvailableDynamicSMemPerBlock(&dynamic, fill, 2, 128));
  VALUE(dynamic > 0);
  CODE(cuMemFree(memory));
}

void Globals(CUmodule module) {
  CUdeviceptr address = 0;
  size_t bytes = 0;
  CODE(cuModuleGetGlobal(&address, &bytes, module, "counter"));
  VALUE(bytes);
  VALUE(DigestOf(address, 4));
  CODE(cuModuleGetGlobal(&address, &bytes, module, "table"));
  VALUE(bytes);
  CODE(cuMemsetD8(address, 1, bytes));
  CODE(cuModuleGetGlobal(&address, &bytes, module, "absent"));
  CODE(cuModuleGetGlobal(nullptr, &bytes, module, "counter"));
  CODE(cuModuleGetGlobal(&address, nullptr, module, "counter"));
  unsigned functions = 0;
  CODE(cuModuleGetFunctionCount(&functions, module));
  VALUE(functions);
  std::vector<CUfunction> all(functions);
  CODE(cuModuleEnumerateFunctions(all.data(), functions, module));
}

void Libraries() {
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  unsigned count = 0;
  CODE(cuLibraryLoadData(&library, kKernels, nullptr, nullptr, 0, nullptr, nullptr, 0));
  CODE(cuLibraryGetKernelCount(&count, library));
  VALUE(count);
  CODE(cuLibraryGetKernel(&kernel, library, "Fill"));
  CODE(cuLibraryGetKernel(&kernel, library, "Absent"));
  const char* name = nullptr;
  CODE(cuKernelGetName(&name, kernel));
  TEXT(name == nullptr ? "" : name);
  size_t offset = 0, bytes = 0;
  CODE(cuKernelGetParamInfo(kernel, 1, &offset, &bytes));
  VALUE(offset);
  VALUE(bytes);
  CODE(cuKernelGetParamInfo(kernel, 2, &offset, &bytes));
  int value = 0;
  CODE(cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel, 0));
  VALUE(value);
  CUfunction function = nullptr;
  CODE(cuKernelGetFunction(&function, kernel));
  CUlibrary back = nullptr;
  CODE(cuKernelGetLibrary(&back, kernel));
  VALUE(back == library);
  CUdeviceptr address = 0;
  CODE(cuLibraryGetGlobal(&address, &bytes, library, "counter"));
  VALUE(bytes);
  CODE(cuLibraryGetGlobal(&address, &bytes, library, "absent"));
  CUmodule module = nullptr;
  CODE(cuLibraryGetModule(&module, library));
  CODE(cuLibraryUnload(library));
  CODE(cuLibraryLoadData(&library, "no code", nullptr, nullptr, 0, nullptr, nullptr, 0));
  CODE(cuLibraryLoadFromFile(&library, "/no/such/file", nullptr, nullptr, 0, nullptr, nullptr, 0));
}

}  // namespace

void Modules() {
  InContext in;
  CUmodule module = LoadKernels();
  Globals(module);
  Launches(module);
  CUmoduleLoadingMode mode;
  CODE(cuModuleGetLoadingMode(&mode));
  VALUE(mode);
  CODE(cuModuleUnload(module));
  CODE(cuModuleLoadData(&module, "no code"));
  CODE(cuModuleLoadData(&module, nullptr));
  CODE(cuModuleLoadData(nullptr, kKernels));
  CODE(cuModuleLoad(&module, "/no/such/file"));
  char log[512] = {};
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  CODE(cuModuleLoadDataEx(&module, ".version 6.4\n.target sm_75\nnonsense\n", 2, options, values));
  VALUE(std::strlen(log) > 0);
  Libraries();
}

}  // namespace conformance
