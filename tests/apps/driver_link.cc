// Linking at run time: a kernel in one PTX text calls a function of another, given as data and as a
// file; wrong text is refused with the linker's own words. By the calls of both versions.
#include <cudaTypedefs.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "driver_lookup.h"
#include "driver_program.h"

// output = input * factor + offset, as driver_program.h wants it.
static const char kKernel[] = R"(
.version 7.0
.target sm_70
.address_size 64
.extern .func (.param .b32 result) MultiplyAdd(.param .b32 a, .param .b32 b, .param .b32 c);
.visible .global .align 4 .u32 offset = 3;
.visible .entry Scale(.param .u64 input, .param .u64 output, .param .u32 factor,
                      .param .u32 count)
{
  .reg .pred %p<2>;
  .reg .b32 %r<10>;
  .reg .b64 %rd<8>;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.s32 %r4, %r1, %r2, %r3;
  ld.param.u32 %r5, [count];
  setp.ge.s32 %p1, %r4, %r5;
  @%p1 bra done;
  ld.param.u64 %rd1, [input];
  ld.param.u64 %rd2, [output];
  ld.param.u32 %r6, [factor];
  cvta.to.global.u64 %rd3, %rd1;
  cvta.to.global.u64 %rd4, %rd2;
  mul.wide.s32 %rd5, %r4, 4;
  add.s64 %rd6, %rd3, %rd5;
  add.s64 %rd7, %rd4, %rd5;
  ld.global.u32 %r7, [%rd6];
  ld.global.u32 %r8, [offset];
  {
    .param .b32 a;
    st.param.b32 [a], %r7;
    .param .b32 b;
    st.param.b32 [b], %r6;
    .param .b32 c;
    st.param.b32 [c], %r8;
    .param .b32 sum;
    call.uni (sum), MultiplyAdd, (a, b, c);
    ld.param.b32 %r9, [sum];
  }
  st.global.u32 [%rd7], %r9;
done:
  ret;
}
)";

static const char kFunction[] = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .func (.param .b32 result) MultiplyAdd(.param .b32 a, .param .b32 b, .param .b32 c)
{
  .reg .b32 %r<5>;
  ld.param.b32 %r1, [a];
  ld.param.b32 %r2, [b];
  ld.param.b32 %r3, [c];
  mad.lo.s32 %r4, %r1, %r2, %r3;
  st.param.b32 [result], %r4;
  ret;
}
)";

static const char kWrong[] = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry Wrong( { this is no PTX at all }
)";

struct Linker {
  explicit Linker(int version)
      : create(Lookup<PFN_cuLinkCreate_v6050>("cuLinkCreate", version)),
        add_data(Lookup<PFN_cuLinkAddData_v6050>("cuLinkAddData", version)),
        add_file(Lookup<PFN_cuLinkAddFile_v6050>("cuLinkAddFile", version)) {}
  void AddText(CUlinkState link, const char* text, size_t bytes) const {
    CHECK_DRIVER(add_data(link, CU_JIT_INPUT_PTX, const_cast<char*>(text), bytes, "text.ptx", 0,
                          nullptr, nullptr));
  }
  const PFN_cuLinkCreate_v6050 create;
  const PFN_cuLinkAddData_v6050 add_data;
  const PFN_cuLinkAddFile_v6050 add_file;
};

static void RunLinked(CUlinkState link) {
  void* image = nullptr;
  size_t bytes = 0;
  CHECK_DRIVER(cuLinkComplete(link, &image, &bytes));
  EXPECT(image != nullptr && bytes > 100, "the image has %zu bytes", bytes);
  CUmodule module = nullptr;
  CHECK_DRIVER(cuModuleLoadData(&module, image));
  CHECK_DRIVER(cuLinkDestroy(link));
  RunScale(module);
  CHECK_DRIVER(cuModuleUnload(module));
}

static std::string WriteFile(const char* text) {
  std::string path = "/tmp/driver_link_XXXXXX";
  int file = mkstemp(path.data());
  EXPECT(file >= 0, "no file %s", path.c_str());
  FILE* stream = fdopen(file, "w");
  std::fputs(text, stream);
  std::fclose(stream);
  return path;
}

static void Link(const Linker& linker) {
  CUlinkState link = nullptr;
  CHECK_DRIVER(linker.create(0, nullptr, nullptr, &link));
  linker.AddText(link, kKernel, sizeof kKernel);
  linker.AddText(link, kFunction, sizeof kFunction);
  RunLinked(link);

  std::string path = WriteFile(kFunction);
  CHECK_DRIVER(linker.create(0, nullptr, nullptr, &link));
  linker.AddText(link, kKernel, sizeof kKernel);
  CHECK_DRIVER(linker.add_file(link, CU_JIT_INPUT_PTX, path.c_str(), 0, nullptr, nullptr));
  std::remove(path.c_str());
  EXPECT(linker.add_file(link, CU_JIT_INPUT_PTX, path.c_str(), 0, nullptr, nullptr) ==
             CUDA_ERROR_FILE_NOT_FOUND,
         "a file that is not there was added");
  RunLinked(link);
}

static void Refusals(const Linker& linker) {
  CUlinkState link = nullptr;
  char log[4096] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(uintptr_t{sizeof log})};
  CHECK_DRIVER(linker.create(2, options, values, &link));
  CUresult result = linker.add_data(link, CU_JIT_INPUT_PTX, const_cast<char*>(kWrong),
                                    sizeof kWrong, "wrong.ptx", 0, nullptr, nullptr);
  void* image = nullptr;
  size_t bytes = 0;
  if (result == CUDA_SUCCESS) result = cuLinkComplete(link, &image, &bytes);
  EXPECT(result == CUDA_ERROR_INVALID_PTX, "wrong text gave %d", result);
  EXPECT(std::strlen(log) > 10, "the log says '%s'", log);
  CHECK_DRIVER(cuLinkDestroy(link));
  EXPECT(linker.create(0, nullptr, nullptr, nullptr) == CUDA_ERROR_INVALID_VALUE, "nowhere");
  EXPECT_OF_MISTAKE(
      linker.add_data(link, CU_JIT_INPUT_PTX, const_cast<char*>(kFunction), sizeof kFunction,
                      "late.ptx", 0, nullptr, nullptr) == CUDA_ERROR_INVALID_HANDLE,
      "a linker that is gone");
}

int main() {
  CUdevice device = 0;
  CUcontext context = OpenContext(&device);
  for (const int version : {5050, 6050}) {
    const Linker linker(version);
    Link(linker);
    Refusals(linker);
  }
  CHECK_DRIVER(cuCtxDestroy(context));
  std::printf("PASS driver_link\n");
}
