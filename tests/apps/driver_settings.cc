// Small things around launches: settings of core dumps, notifications of devices, and cooperative
// launches on as many devices as there are.
#include <cstring>
#include <string>

#include "driver_fatbin.h"
#include "driver_program.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // cuLaunchCooperativeKernelMultiDevice

template <class T>
static T Ask(CUresult (*get)(CUcoredumpSettings, void*, size_t*), CUcoredumpSettings attribute) {
  T value{};
  size_t size = sizeof value;
  CHECK_DRIVER(get(attribute, &value, &size));
  return value;
}

static std::string AskName(CUresult (*get)(CUcoredumpSettings, void*, size_t*),
                           CUcoredumpSettings attribute) {
  char name[1024] = "";
  size_t size = sizeof name;
  CHECK_DRIVER(get(attribute, name, &size));
  return name;
}

static CUresult Set(CUcoredumpSettings attribute, bool value, bool global) {
  size_t size = sizeof value;
  return global ? cuCoredumpSetAttributeGlobal(attribute, &value, &size)
                : cuCoredumpSetAttribute(attribute, &value, &size);
}

// The values before any change, and after.
static void CoreDumps() {
  for (auto get : {cuCoredumpGetAttribute, cuCoredumpGetAttributeGlobal}) {
    EXPECT(!Ask<bool>(get, CU_COREDUMP_ENABLE_ON_EXCEPTION), "dumps are on");
    EXPECT(!Ask<bool>(get, CU_COREDUMP_ENABLE_USER_TRIGGER), "dumps can be asked for");
    EXPECT(!Ask<bool>(get, CU_COREDUMP_LIGHTWEIGHT), "dumps are small");
    EXPECT(Ask<bool>(get, CU_COREDUMP_TRIGGER_HOST), "the host's dump is off");
    EXPECT(Ask<int>(get, CU_COREDUMP_GENERATION_FLAGS) == 0, "flags");
    EXPECT(AskName(get, CU_COREDUMP_FILE).find("core.cuda.") == 0, "the file");
    EXPECT(AskName(get, CU_COREDUMP_PIPE).find("corepipe.cuda.") == 0, "the pipe");
  }
  CHECK_DRIVER(Set(CU_COREDUMP_ENABLE_ON_EXCEPTION, false, true));
  CHECK_DRIVER(Set(CU_COREDUMP_TRIGGER_HOST, false, false));
  EXPECT(!Ask<bool>(cuCoredumpGetAttribute, CU_COREDUMP_TRIGGER_HOST), "the context's setting");
  EXPECT(Ask<bool>(cuCoredumpGetAttributeGlobal, CU_COREDUMP_TRIGGER_HOST),
         "all contexts' setting");
  char name[] = "/tmp/my.core";
  size_t size = sizeof name;
  CHECK_DRIVER(cuCoredumpSetAttribute(CU_COREDUMP_FILE, name, &size));
  EXPECT(AskName(cuCoredumpGetAttribute, CU_COREDUMP_FILE) == name, "the file");
  size = 3;
  EXPECT(cuCoredumpGetAttribute(CU_COREDUMP_FILE, name, &size) == CUDA_ERROR_INVALID_VALUE, "room");
  EXPECT(cuCoredumpGetAttribute(static_cast<CUcoredumpSettings>(99), name, &size) ==
             CUDA_ERROR_INVALID_VALUE,
         "no attribute");
  const bool on = Set(CU_COREDUMP_ENABLE_ON_EXCEPTION, true, true) == CUDA_SUCCESS;
  EXPECT(Ask<bool>(cuCoredumpGetAttributeGlobal, CU_COREDUMP_ENABLE_ON_EXCEPTION) == on,
         "dumps that were refused are on, or those that were not are off");
  CHECK_DRIVER(Set(CU_COREDUMP_ENABLE_ON_EXCEPTION, false, true));
  EXPECT(Set(CU_COREDUMP_ENABLE_USER_TRIGGER, true, false) != CUDA_SUCCESS,
         "one context's user trigger");
}

static void CUDA_CB Never(CUasyncNotificationInfo*, void*, CUasyncCallbackHandle) { std::abort(); }

static void Notifications(CUdevice device) {
  CUasyncCallbackHandle one = nullptr, two = nullptr;
  CHECK_DRIVER(cuDeviceRegisterAsyncNotification(device, Never, nullptr, &one));
  CHECK_DRIVER(cuDeviceRegisterAsyncNotification(device, Never, nullptr, &two));
  EXPECT(one != two, "two registrations with one handle");
  CHECK_DRIVER(cuDeviceUnregisterAsyncNotification(device, one));
  EXPECT(cuDeviceUnregisterAsyncNotification(device, one) != CUDA_SUCCESS, "unregistered twice");
  CHECK_DRIVER(cuDeviceUnregisterAsyncNotification(device, two));
  EXPECT(cuDeviceRegisterAsyncNotification(99, Never, nullptr, &one) == CUDA_ERROR_INVALID_DEVICE,
         "no device");
  EXPECT(
      cuDeviceRegisterAsyncNotification(device, nullptr, nullptr, &one) == CUDA_ERROR_INVALID_VALUE,
      "no function");
}

// One device's part: output = input * 5 + 3.
struct Part {
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUstream stream = nullptr;
  CUdeviceptr input = 0, output = 0;
  int factor = 5, count = 256;
  void* parameters[4] = {&input, &output, &factor, &count};
  CUDA_LAUNCH_PARAMS launch = {};

  explicit Part(CUdevice device) {
    CHECK_DRIVER(cuCtxCreate(&context, nullptr, 0, device));
    CHECK_DRIVER(cuModuleLoadData(&module, kernels_fatbin));
    CHECK_DRIVER(cuModuleGetFunction(&launch.function, module, "Scale"));
    CHECK_DRIVER(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CHECK_DRIVER(cuMemAlloc(&input, 1024));
    CHECK_DRIVER(cuMemAlloc(&output, 1024));
    CHECK_DRIVER(cuMemsetD32Async(input, 7, 256, stream));
    launch.gridDimX = 2;
    launch.blockDimX = 128;
    launch.gridDimY = launch.gridDimZ = launch.blockDimY = launch.blockDimZ = 1;
    launch.hStream = stream;
    launch.kernelParams = parameters;
  }
  Part(const Part&) = delete;
  void Expect() const {
    unsigned found[256];
    CHECK_DRIVER(cuCtxSetCurrent(context));
    CHECK_DRIVER(cuMemcpyDtoHAsync(found, output, sizeof found, stream));
    CHECK_DRIVER(cuStreamSynchronize(stream));
    for (unsigned value : found) EXPECT(value == 38, "the kernel gave %u", value);
    CHECK_DRIVER(cuCtxDestroy(context));
  }
};

static void LaunchesEverywhere() {
  int devices = 0;
  CHECK_DRIVER(cuDeviceGetCount(&devices));
  devices = devices > 2 ? 2 : devices;
  std::vector<Part*> parts;
  std::vector<CUDA_LAUNCH_PARAMS> launches;
  for (int device = 0; device < devices; ++device) {
    parts.push_back(new Part(device));
    launches.push_back(parts.back()->launch);
  }
  const unsigned count = static_cast<unsigned>(devices);
  CHECK_DRIVER(cuLaunchCooperativeKernelMultiDevice(launches.data(), count, 0));
  EXPECT(cuLaunchCooperativeKernelMultiDevice(launches.data(), 0, 0) == CUDA_ERROR_INVALID_VALUE,
         "no launch");
  EXPECT(cuLaunchCooperativeKernelMultiDevice(nullptr, count, 0) == CUDA_ERROR_INVALID_VALUE,
         "no list");
  EXPECT(
      cuLaunchCooperativeKernelMultiDevice(launches.data(), count, 8) == CUDA_ERROR_INVALID_VALUE,
      "flags that are none");
  launches[0].hStream = nullptr;
  EXPECT(
      cuLaunchCooperativeKernelMultiDevice(launches.data(), count, 0) == CUDA_ERROR_INVALID_VALUE,
      "the default stream");
  if (devices == 2) {
    launches[0] = launches[1];
    EXPECT(cuLaunchCooperativeKernelMultiDevice(launches.data(), 2, 0) == CUDA_ERROR_INVALID_VALUE,
           "one device twice");
  }
  for (Part* part : parts) part->Expect();
}

int main() {
  CUdevice device = 0;
  CUcontext context = OpenContext(&device);
  CoreDumps();
  Notifications(device);
  CHECK_DRIVER(cuCtxDestroy(context));
  LaunchesEverywhere();
  std::puts("PASS driver_settings");
  return 0;
}
