// What the driver-API programs share: a context, and running the kernel Scale of a loaded module
// (output = input * factor + the module's variable offset) against the host's result.
#pragma once

#include <vector>

#include "driver_check.h"

inline CUcontext OpenContext(CUdevice* device) {
  CUcontext context = nullptr;
  CHECK_DRIVER(cuInit(0));
  CHECK_DRIVER(cuDeviceGet(device, 0));
  CHECK_DRIVER(cuCtxCreate(&context, nullptr, 0, *device));
  return context;
}

inline void SetOffset(CUmodule module, int offset) {
  CUdeviceptr address = 0;
  size_t size = 0;
  CHECK_DRIVER(cuModuleGetGlobal(&address, &size, module, "offset"));
  EXPECT(size == sizeof(int), "the variable has %zu bytes", size);
  int initial = 0;
  CHECK_DRIVER(cuMemcpyDtoH(&initial, address, sizeof initial));
  EXPECT(initial == 3, "the variable's initial value is %d", initial);
  CHECK_DRIVER(cuMemcpyHtoD(address, &offset, sizeof offset));
}

inline void RunScale(CUmodule module) {
  const int count = 1000, factor = 7, offset = 100;
  const size_t bytes = count * sizeof(int);
  std::vector<int> input(count), output(count);
  for (int i = 0; i < count; ++i) input[i] = i - 500;
  CUfunction scale = nullptr;
  CHECK_DRIVER(cuModuleGetFunction(&scale, module, "Scale"));
  CUfunction missing = nullptr;
  EXPECT(cuModuleGetFunction(&missing, module, "Missing") == CUDA_ERROR_NOT_FOUND,
         "a kernel that is not there was found");
  SetOffset(module, offset);
  CUdeviceptr device_input = 0, device_output = 0;
  CHECK_DRIVER(cuMemAlloc(&device_input, bytes));
  CHECK_DRIVER(cuMemAlloc(&device_output, bytes));
  CHECK_DRIVER(cuMemcpyHtoD(device_input, input.data(), bytes));
  // A copy of few bytes may return before they are there, and the stream below does not wait.
  CHECK_DRIVER(cuCtxSynchronize());
  CUstream stream = nullptr;
  CHECK_DRIVER(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));

  void* parameters[] = {&device_input, &device_output, const_cast<int*>(&factor),
                        const_cast<int*>(&count)};
  CHECK_DRIVER(cuLaunchKernel(scale, 8, 1, 1, 128, 1, 1, 0, stream, parameters, nullptr));
  // The second launch passes its parameters as one packed buffer: output = output * 7 + 100.
  struct Packed {
    CUdeviceptr input, output;
    int factor, count;
  } packed{device_output, device_output, factor, count};
  size_t packed_bytes = sizeof packed;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE,
                   &packed_bytes, CU_LAUNCH_PARAM_END};
  CHECK_DRIVER(cuLaunchKernel(scale, 8, 1, 1, 128, 1, 1, 0, stream, nullptr, extra));
  CHECK_DRIVER(cuMemcpyDtoHAsync(output.data(), device_output, bytes, stream));
  CHECK_DRIVER(cuStreamSynchronize(stream));
  for (int i = 0; i < count; ++i) {
    const int expected = (input[i] * factor + offset) * factor + offset;
    EXPECT(output[i] == expected, "element %d is %d, not %d", i, output[i], expected);
  }
  CHECK_DRIVER(cuStreamDestroy(stream));
  CHECK_DRIVER(cuMemFree(device_input));
  CHECK_DRIVER(cuMemFree(device_output));
}
