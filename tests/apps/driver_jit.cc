// What the just-in-time compiler and the linker say: codes of images that are none, and logs,
// their lengths and the time, at the call that produces them and also when it fails.
#include <unistd.h>

#include <cstdint>
#include <string>

#include "driver_program.h"

static const std::string kHead = ".version 7.0\n.target sm_75\n.address_size 64\n";
static const std::string kCaller = kHead + R"(
.extern .func (.param .b32 r) Thrice(.param .b32 v);
.visible .entry Run(.param .u64 p)
{
  .reg .u64 %a; .reg .u32 %v;
  ld.param.u64 %a, [p];
  cvta.to.global.u64 %a, %a;
  ld.global.u32 %v, [%a];
  {
    .param .b32 v;
    .param .b32 r;
    st.param.b32 [v], %v;
    call.uni (r), Thrice, (v);
    ld.param.b32 %v, [r];
  }
  st.global.u32 [%a], %v;
  ret;
}
)";
static const std::string kCallee = kHead + R"(
.visible .func (.param .b32 r) Thrice(.param .b32 v)
{
  .reg .u32 %v;
  ld.param.u32 %v, [v];
  mul.lo.u32 %v, %v, 3;
  st.param.b32 [r], %v;
  ret;
}
)";
static const std::string kWrong =
    kHead + ".visible .entry Wrong()\n{\n  outgrabe.u32 1;\n  ret;\n}\n";

// All outputs that there are, with marks where nothing was written.
struct Outputs {
  static constexpr uintptr_t kMark = 0x1234567;
  char info[2048], error[2048];
  CUjit_option names[6] = {
      CU_JIT_INFO_LOG_BUFFER,  CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,  CU_JIT_WALL_TIME,
      CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_LOG_VERBOSE};
  void* values[6] = {info,  AsValue(sizeof info),  AsValue(kMark),
                     error, AsValue(sizeof error), AsValue(1)};

  Outputs() {
    std::memset(info, '~', sizeof info);
    std::memset(error, '~', sizeof error);
    info[0] = error[0] = 0;
  }
  static void* AsValue(uintptr_t value) { return reinterpret_cast<void*>(value); }
  void Check(const char* what, bool failed) const {
    float milliseconds = -1;
    std::memcpy(&milliseconds, &values[2], sizeof milliseconds);
    EXPECT(values[2] != AsValue(kMark), "%s: no time was written", what);
    EXPECT(milliseconds >= 0 && milliseconds < 60000, "%s: it took %g ms", what, milliseconds);
    EXPECT(values[0] == info && values[3] == error, "%s: a log was moved", what);
    EXPECT(values[1] != AsValue(sizeof info) && values[4] != AsValue(sizeof error),
           "%s: a length was not written", what);
    size_t length = strnlen(error, sizeof error);
    EXPECT(length < sizeof error && strnlen(info, sizeof info) < sizeof info,
           "%s: a log does not end", what);
    EXPECT(!failed || length > 4, "%s: no text says what is wrong", what);
    EXPECT(values[4] == AsValue(length) || values[4] == AsValue(length + 1),
           "%s: the log has %zu bytes, told as %zu", what, length,
           reinterpret_cast<size_t>(values[4]));
  }
};

static void Images() {
  CUmodule module = nullptr;
  CUlibrary library = nullptr;
  const char garbage[64] = "this is no image of any kind, whatever one does with it";
  EXPECT(cuModuleLoadData(&module, garbage) == CUDA_ERROR_INVALID_IMAGE, "garbage");
  EXPECT(
      cuModuleLoadData(&module, kHead.c_str() + kHead.find(".target")) == CUDA_ERROR_INVALID_IMAGE,
      "a text without a version");
  EXPECT(cuModuleLoadData(&module, kWrong.c_str()) == CUDA_ERROR_INVALID_PTX, "wrong PTX");
  EXPECT(cuModuleLoad(&module, "/no/such/file") == CUDA_ERROR_FILE_NOT_FOUND, "no file");
  EXPECT(cuLibraryLoadFromFile(&library, "/no/such/file", nullptr, nullptr, 0, nullptr, nullptr,
                               0) == CUDA_ERROR_FILE_NOT_FOUND,
         "no file for a library");
  char path[] = "/tmp/driver_jit.XXXXXX";
  const int file = mkstemp(path);
  const bool written = write(file, kWrong.c_str(), kWrong.size()) > 0;
  EXPECT(written && cuModuleLoad(&module, path) == CUDA_ERROR_INVALID_PTX, "wrong PTX of a file");
  close(file);
  unlink(path);
}

static void Loads() {
  CUmodule module = nullptr;
  CUlibrary library = nullptr;
  Outputs good, wrong, of_library, wrong_library;
  CHECK_DRIVER(cuModuleLoadDataEx(&module, kCallee.c_str(), 6, good.names, good.values));
  good.Check("a load", false);
  CHECK_DRIVER(cuModuleUnload(module));
  EXPECT(cuModuleLoadDataEx(&module, kWrong.c_str(), 6, wrong.names, wrong.values) ==
             CUDA_ERROR_INVALID_PTX,
         "wrong PTX");
  wrong.Check("a wrong load", true);
  CHECK_DRIVER(cuLibraryLoadData(&library, kCallee.c_str(), of_library.names, of_library.values, 6,
                                 nullptr, nullptr, 0));
  CHECK_DRIVER(cuLibraryUnload(library));
  // A short buffer takes what it has room for, and ends.
  char few[8];
  std::memset(few, '~', sizeof few);
  CUjit_option names[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {few, Outputs::AsValue(4)};
  EXPECT(cuModuleLoadDataEx(&module, kWrong.c_str(), 2, names, values) == CUDA_ERROR_INVALID_PTX,
         "wrong PTX");
  EXPECT(strnlen(few, sizeof few) < 4 && few[4] == '~', "more than there was room for");
}

static void Add(CUlinkState link, const std::string& text, const char* name) {
  CHECK_DRIVER(cuLinkAddData(link, CU_JIT_INPUT_PTX, const_cast<char*>(text.c_str()),
                             text.size() + 1, name, 0, nullptr, nullptr));
}

static void Links() {
  void* cubin = nullptr;
  size_t bytes = 0;
  CUlinkState link = nullptr;
  Outputs good, missing, wrong;
  CHECK_DRIVER(cuLinkCreate(6, good.names, good.values, &link));
  Add(link, kCaller, "caller");
  Add(link, kCallee, "callee");
  CHECK_DRIVER(cuLinkComplete(link, &cubin, &bytes));
  good.Check("a link", false);
  CUmodule module = nullptr;
  CHECK_DRIVER(cuModuleLoadData(&module, cubin));
  CHECK_DRIVER(cuLinkDestroy(link));
  CUfunction function = nullptr;
  CUdeviceptr memory = 0;
  unsigned value = 14;
  CHECK_DRIVER(cuModuleGetFunction(&function, module, "Run"));
  CHECK_DRIVER(cuMemAlloc(&memory, sizeof value));
  CHECK_DRIVER(cuMemcpyHtoD(memory, &value, sizeof value));
  void* arguments[] = {&memory};
  CHECK_DRIVER(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr));
  CHECK_DRIVER(cuMemcpyDtoH(&value, memory, sizeof value));
  EXPECT(value == 42, "what was linked says %u", value);
  CHECK_DRIVER(cuMemFree(memory));
  CHECK_DRIVER(cuModuleUnload(module));

  CHECK_DRIVER(cuLinkCreate(6, missing.names, missing.values, &link));
  Add(link, kCaller, "caller");
  EXPECT(cuLinkComplete(link, &cubin, &bytes) != CUDA_SUCCESS, "a function is missing");
  EXPECT(std::strstr(missing.error, "Thrice") != nullptr, "it is not named: %s", missing.error);
  CHECK_DRIVER(cuLinkDestroy(link));

  CHECK_DRIVER(cuLinkCreate(6, wrong.names, wrong.values, &link));
  EXPECT(cuLinkAddData(link, CU_JIT_INPUT_PTX, const_cast<char*>(kWrong.c_str()), kWrong.size() + 1,
                       "wrong", 0, nullptr, nullptr) == CUDA_ERROR_INVALID_PTX,
         "wrong PTX is linked");
  EXPECT(std::strstr(wrong.error, "outgrabe") != nullptr, "it is not named: %s", wrong.error);
  CHECK_DRIVER(cuLinkDestroy(link));
}

int main() {
  CUdevice device = 0;
  CUcontext context = OpenContext(&device);
  Images();
  Loads();
  Links();
  CHECK_DRIVER(cuCtxDestroy(context));
  std::printf("PASS driver_jit\n");
  return 0;
}
