// Which calls of the driver wait for a kernel that runs in their context, and what the context's
// other threads, and another context of the process, can do meanwhile. Each row is a process of its
// own, in which a kernel polls a flag: whether the call returns before the kernel has ended; how
// many of three steps of another thread were done (an event is recorded, bytes are copied from the
// device, a value is written); and whether another context has run a kernel.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <thread>

#include "driver_check.h"

namespace longwire::bench {
namespace {

using std::chrono::milliseconds;

constexpr const char* kImage = R"(
.version 7.5
.target sm_75
.address_size 64
.visible .global .align 4 .u32 variable = 5;
.visible .entry Poll(.param .u64 flag) {
  .reg .b64 %a; .reg .b32 %v; .reg .pred %p;
  ld.param.u64 %a, [flag];
again:
  ld.volatile.global.u32 %v, [%a];
  setp.eq.u32 %p, %v, 0;
  @%p bra again;
  ret;
}
.visible .entry Set(.param .u64 flag) {
  .reg .b64 %a;
  ld.param.u64 %a, [flag];
  st.volatile.global.u32 [%a], 1;
  membar.sys;
  ret;
}
.visible .entry Other(.param .u64 flag) { ret; }
)";

bool Within(milliseconds time, const std::function<bool()>& done) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
    if (done()) return true;
    std::this_thread::sleep_for(milliseconds(1));
  }
  return false;
}

// Two contexts, with a stream and the kernels in each.
struct Place {
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  CUfunction poll = nullptr, set = nullptr;

  void Fill() {
    CUmodule module = nullptr;
    Check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
    Check(cuModuleLoadData(&module, kImage), "cuModuleLoadData");
    Check(cuModuleGetFunction(&poll, module, "Poll"), "cuModuleGetFunction");
    Check(cuModuleGetFunction(&set, module, "Set"), "cuModuleGetFunction");
    Check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  }
  void Launch(CUfunction function, CUdeviceptr flag) const {
    void* parameters[] = {&flag};
    Check(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr),
          "cuLaunchKernel");
  }
};

// What calls are tried with.
struct Objects {
  CUdevice device = 0;
  Place one, two;
  CUdeviceptr flag = 0, memory = 0, more = 0;
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  CUfunction function = nullptr;
  CUmodule module = nullptr;
  CUarray array = nullptr;
  void* host = nullptr;
  size_t size = 0, offset = 0;
  int value = 0;

  void Make() {
    Check(cuInit(0), "cuInit");
    Check(cuDeviceGet(&device, 0), "cuDeviceGet");
    Check(cuDevicePrimaryCtxRetain(&one.context, device), "cuDevicePrimaryCtxRetain");
    one.Fill();
    Check(cuMemAlloc(&flag, 64), "cuMemAlloc");
    Check(cuMemsetD8(flag, 0, 64), "cuMemsetD8");
    Check(cuMemAlloc(&memory, 4096), "cuMemAlloc");
    CUctxCreateParams parameters{};
    Check(cuCtxCreate(&two.context, &parameters, 0, device), "cuCtxCreate");
    two.Fill();
    two.Launch(two.set, memory);  // it is loaded
    Check(cuCtxSynchronize(), "cuCtxSynchronize");
    Check(cuCtxSetCurrent(one.context), "cuCtxSetCurrent");
  }
};

// The steps of another thread that were done.
int Steps(const Objects& objects, std::atomic<int>& done) {
  CUstream stream = nullptr;
  CUevent event = nullptr;
  unsigned bytes = 0;
  if (cuCtxSetCurrent(objects.one.context) != CUDA_SUCCESS) return 0;
  if (cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) return 0;
  const std::function<CUresult()> steps[] = {
      [] { return CUDA_SUCCESS; },
      [&] { return cuMemcpyDtoHAsync(&bytes, objects.memory, sizeof(bytes), stream); },
      [&] { return cuStreamWriteValue32(stream, objects.memory, 1, 0); }};
  for (const auto& step : steps) {
    if (step() != CUDA_SUCCESS) break;
    if (cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) break;
    if (cuEventRecord(event, stream) != CUDA_SUCCESS) break;
    if (!Within(milliseconds(150), [&] { return cuEventQuery(event) == CUDA_SUCCESS; })) break;
    ++done;
  }
  return done;
}

using Act = std::function<CUresult(Objects&)>;

[[noreturn]] void RunRow(const char* name, const Act& prepare, const Act& act) {
  static Objects objects;  // threads may outlive the row
  objects.Make();
  Check(prepare(objects), "the preparation");
  objects.one.Launch(objects.one.poll, objects.flag);
  std::this_thread::sleep_for(milliseconds(50));
  static std::atomic<int> ended{0}, steps{0}, beside{0};
  static std::atomic<CUresult> result{CUDA_SUCCESS};
  std::thread([&] {
    cuCtxSetCurrent(objects.one.context);
    result = act(objects);
    ended = 1;
  }).detach();
  const bool returns = Within(milliseconds(300), [] { return ended != 0; });
  std::thread([] { Steps(objects, steps); }).detach();
  std::thread([] {
    cuCtxSetCurrent(objects.two.context);
    objects.two.Launch(objects.two.set, objects.memory);
    beside = cuStreamSynchronize(objects.two.stream) == CUDA_SUCCESS ? 1 : 0;
  }).detach();
  std::this_thread::sleep_for(milliseconds(700));
  const int done = steps;
  // The kernel ends by a kernel of the other context.
  std::thread([] {
    cuCtxSetCurrent(objects.two.context);
    objects.two.Launch(objects.two.set, objects.flag);
  }).detach();
  const bool late = Within(milliseconds(1000), [] { return ended != 0; });
  std::printf("%-40s %-8s %d of 3     %s%s\n", name, returns ? "returns" : "waits", done,
              beside != 0 ? "yes" : "no", late ? "" : "  (and does not return behind it)");
  if (late && result != CUDA_SUCCESS) std::printf("    code %d\n", static_cast<int>(result.load()));
  std::fflush(stdout);
  std::_Exit(0);
}

void Row(const char* name, const Act& prepare, const Act& act) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) RunRow(name, prepare, act);
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
    std::printf("%-40s could not be tried (status %d)\n", name, status);
  }
}

CUresult None(Objects&) { return CUDA_SUCCESS; }

CUresult Library(Objects& o) {
  const CUresult result =
      cuLibraryLoadData(&o.library, kImage, nullptr, nullptr, 0, nullptr, nullptr, 0);
  return result != CUDA_SUCCESS ? result : cuLibraryGetKernel(&o.kernel, o.library, "Other");
}

CUresult Described(Objects& o) {
  const CUresult result = Library(o);
  return result != CUDA_SUCCESS ? result : cuKernelGetParamInfo(o.kernel, 0, &o.offset, &o.size);
}

CUresult LaunchOther(Objects& o) {
  const CUresult result = cuKernelGetFunction(&o.function, o.kernel);
  if (result != CUDA_SUCCESS) return result;
  void* parameters[] = {&o.flag};
  return cuLaunchKernel(o.function, 1, 1, 1, 1, 1, 1, 0, o.one.stream, parameters, nullptr);
}

CUresult Module(Objects& o) { return cuModuleLoadData(&o.module, kImage); }

void CodeRows() {
  Row("cuLibraryLoadData", None, Library);
  Row("cuKernelGetParamInfo", Library,
      [](Objects& o) { return cuKernelGetParamInfo(o.kernel, 0, &o.offset, &o.size); });
  Row("cuKernelGetAttribute", Library, [](Objects& o) {
    return cuKernelGetAttribute(&o.value, CU_FUNC_ATTRIBUTE_NUM_REGS, o.kernel, o.device);
  });
  Row("cuKernelGetFunction", Library,
      [](Objects& o) { return cuKernelGetFunction(&o.function, o.kernel); });
  Row("cuLaunchKernel, not loaded", Library, LaunchOther);
  Row("cuKernelGetFunction, loaded", Described,
      [](Objects& o) { return cuKernelGetFunction(&o.function, o.kernel); });
  Row("cuLibraryGetGlobal", Library,
      [](Objects& o) { return cuLibraryGetGlobal(&o.more, &o.size, o.library, "variable"); });
  Row("cuLibraryUnload", Described, [](Objects& o) { return cuLibraryUnload(o.library); });
  Row("cuModuleLoadData", None, Module);
  Row("cuModuleUnload", Module, [](Objects& o) { return cuModuleUnload(o.module); });
  Row("cuModuleLoadData in the other context", None, [](Objects& o) {
    cuCtxSetCurrent(o.two.context);
    return Module(o);
  });
}

void MemoryRows() {
  constexpr size_t kBytes = size_t{64} << 20;
  const Act allocate = [](Objects& o) { return cuMemAlloc(&o.more, kBytes); };
  const Act pin = [](Objects& o) { return cuMemHostAlloc(&o.host, kBytes, 0); };
  const Act make_array = [](Objects& o) {
    const CUDA_ARRAY_DESCRIPTOR shape{64, 64, CU_AD_FORMAT_FLOAT, 1};
    return cuArrayCreate(&o.array, &shape);
  };
  Row("cuMemAlloc", None, allocate);
  Row("cuMemFree", allocate, [](Objects& o) { return cuMemFree(o.more); });
  Row("cuMemHostAlloc", None, pin);
  Row("cuMemFreeHost", pin, [](Objects& o) { return cuMemFreeHost(o.host); });
  Row("cuArrayCreate", None, make_array);
  Row("cuArrayDestroy", make_array, [](Objects& o) { return cuArrayDestroy(o.array); });
  Row("cuCtxSetLimit", None, [](Objects&) { return cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 65536); });
  Row("cuMemGetInfo", None, [](Objects& o) { return cuMemGetInfo(&o.size, &o.offset); });
}

}  // namespace
}  // namespace longwire::bench

int main() {
  std::printf("%-40s %-8s %-10s %s\n", "beside a kernel that runs", "it", "steps", "context");
  longwire::bench::CodeRows();
  longwire::bench::MemoryRows();
  return 0;
}
