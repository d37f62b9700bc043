// conformance CHAPTER: runs one chapter's checks; without an argument lists the chapters.
#include <cstdlib>
#include <cstring>

#include "check.h"

namespace conformance {

const std::vector<Chapter> kChapters = {{"arrays", Arrays},
                                        {"captures", Captures},
                                        {"contextless", Contextless},
                                        {"contexts", Contexts},
                                        {"copies", Copies},
                                        {"devices", Devices},
                                        {"events", Events},
                                        {"graph_lists", GraphLists},
                                        {"graph_updates", GraphUpdates},
                                        {"graphs", Graphs},
                                        {"green_contexts", GreenContexts},
                                        {"images", Images},
                                        {"memory", Memory},
                                        {"mistakes", Mistakes},
                                        {"modules", Modules},
                                        {"pool_kinds", PoolKinds},
                                        {"pools", Pools},
                                        {"registration", Registration},
                                        {"streams", Streams},
                                        {"virtual_memory", VirtualMemory}};

const char* const kKernels = R"(
.version 6.4
.target sm_75
.address_size 64
.visible .global .align 4 .u32 counter = 7;
.visible .const .align 4 .b8 table[64];
.visible .entry Nothing() { ret; }
.visible .entry Fill(.param .u64 out, .param .u32 value) {
  .reg .b32 %r<8>; .reg .b64 %d<4>;
  ld.param.u64 %d1, [out]; ld.param.u32 %r1, [value];
  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;
  mad.lo.u32 %r5, %r2, %r3, %r4;
  cvta.to.global.u64 %d1, %d1;
  mul.wide.u32 %d2, %r5, 4; add.s64 %d3, %d1, %d2;
  add.u32 %r6, %r5, %r1;
  st.global.u32 [%d3], %r6;
  ret;
}
.visible .entry Add(.param .u64 out, .param .u32 value) {
  .reg .b32 %r<8>; .reg .b64 %d<4>;
  ld.param.u64 %d1, [out]; ld.param.u32 %r1, [value];
  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;
  mad.lo.u32 %r5, %r2, %r3, %r4;
  cvta.to.global.u64 %d1, %d1;
  mul.wide.u32 %d2, %r5, 4; add.s64 %d3, %d1, %d2;
  ld.global.u32 %r6, [%d3]; add.u32 %r6, %r6, %r1;
  st.global.u32 [%d3], %r6;
  ret;
}
)";

bool IsLeftOut(const char* file, int line) {
  const char* lines = std::getenv("CONFORMANCE_LEAVE_OUT");
  if (lines == nullptr) return false;
  const std::string place = std::string(std::strrchr(file, '/') + 1) + ":" + std::to_string(line);
  return (" " + std::string(lines) + " ").find(" " + place + " ") != std::string::npos;
}

CUresult PrintLeftOut(const char* file, int line, const char* what) {
  std::printf("%s:%d %s = (left out)\n", std::strrchr(file, '/') + 1, line, what);
  return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult PrintCode(const char* file, int line, const char* what, CUresult result) {
  const char* name = nullptr;
  if (cuGetErrorName(result, &name) != CUDA_SUCCESS) name = "?";
  std::printf("%s:%d %s = %s\n", std::strrchr(file, '/') + 1, line, what, name);
  return result;
}

void PrintValue(const char* file, int line, const char* what, long long value) {
  std::printf("%s:%d %s = %lld\n", std::strrchr(file, '/') + 1, line, what, value);
}

void PrintText(const char* file, int line, const char* what, const std::string& text) {
  std::printf("%s:%d %s = '%s'\n", std::strrchr(file, '/') + 1, line, what, text.c_str());
}

InContext::InContext() {
  CODE(cuInit(0));
  CODE(cuDeviceGet(&device, 0));
  CODE(cuCtxCreate(&context, nullptr, 0, device));
}

InContext::~InContext() { CODE(cuCtxDestroy(context)); }

CUmodule LoadKernels() {
  CUmodule module = nullptr;
  CODE(cuModuleLoadData(&module, kKernels));
  return module;
}

CUresult Launch(CUfunction function, unsigned blocks, unsigned threads, CUstream stream,
                CUdeviceptr out, unsigned value) {
  void* parameters[] = {&out, &value};
  return cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, stream, parameters, nullptr);
}

long long Digest(const void* bytes, size_t count) {
  uint64_t hash = 1469598103934665603u;
  for (size_t i = 0; i < count; ++i) {
    hash = (hash ^ static_cast<const unsigned char*>(bytes)[i]) * 1099511628211u;
  }
  return static_cast<long long>(hash >> 1);
}

long long DigestOf(CUdeviceptr address, size_t count) {
  std::vector<char> bytes(count);
  CUresult result = cuMemcpyDtoH(bytes.data(), address, count);
  return result == CUDA_SUCCESS ? Digest(bytes.data(), count) : -static_cast<long long>(result);
}

}  // namespace conformance

int main(int count, char** arguments) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  for (const auto& chapter : conformance::kChapters) {
    if (count < 2) std::printf("%s\n", chapter.name);
    if (count == 2 && std::strcmp(arguments[1], chapter.name) == 0) {
      chapter.run();
      return 0;
    }
  }
  return count < 2 ? 0 : 2;
}
