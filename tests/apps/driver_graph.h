// What the programs that build graphs with the driver API have in common.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "driver_check.h"
#include "driver_fatbin.h"

// The call must be refused with this code.
#define REFUSED(code, call)                                                                     \
  do {                                                                                          \
    const CUresult refused_code = (call);                                                       \
    EXPECT(refused_code == (code), "%s gave %d, not %d", #call, static_cast<int>(refused_code), \
           static_cast<int>(code));                                                             \
  } while (false)

struct GraphProgram {
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  CUfunction scale = nullptr;  // output[i] = input[i] * factor + 3

  GraphProgram() {
    CHECK_DRIVER(cuInit(0));
    CHECK_DRIVER(cuDeviceGet(&device, 0));
    CHECK_DRIVER(cuDevicePrimaryCtxRetain(&context, device));
    CHECK_DRIVER(cuCtxSetCurrent(context));
    CHECK_DRIVER(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CUmodule module;
    CHECK_DRIVER(cuModuleLoadData(&module, kernels_fatbin));
    CHECK_DRIVER(cuModuleGetFunction(&scale, module, "Scale"));
  }

  CUdeviceptr Allocate(size_t ints) {
    CUdeviceptr memory = 0;
    CHECK_DRIVER(cuMemAlloc(&memory, ints * sizeof(int)));
    CHECK_DRIVER(cuMemsetD32(memory, 0, ints));
    CHECK_DRIVER(cuCtxSynchronize());  // the programs' stream does not wait for the legacy one
    return memory;
  }

  CUgraphExec Instantiate(CUgraph graph) {
    CUgraphExec exec = nullptr;
    CHECK_DRIVER(cuGraphInstantiate(&exec, graph, 0));
    return exec;
  }

  void Run(CUgraphExec exec) {
    CHECK_DRIVER(cuGraphLaunch(exec, stream));
    CHECK_DRIVER(cuStreamSynchronize(stream));
  }
};

inline CUgraph NewGraph() {
  CUgraph graph = nullptr;
  CHECK_DRIVER(cuGraphCreate(&graph, 0));
  return graph;
}

// The arguments of Scale, which have to lie somewhere while a node is made.
struct ScaleNode {
  CUdeviceptr input, output;
  int factor, count;
  void* arguments[4] = {&input, &output, &factor, &count};

  CUDA_KERNEL_NODE_PARAMS Params(CUfunction function) {
    CUDA_KERNEL_NODE_PARAMS params = {};
    params.func = function;
    params.gridDimX = (count + 63) / 64;
    params.gridDimY = params.gridDimZ = params.blockDimY = params.blockDimZ = 1;
    params.blockDimX = 64;
    params.kernelParams = arguments;
    return params;
  }
};

inline CUgraphNode AddScale(CUgraph graph, std::vector<CUgraphNode> after, CUfunction function,
                            CUdeviceptr input, CUdeviceptr output, int factor, int count) {
  ScaleNode node{input, output, factor, count};
  CUDA_KERNEL_NODE_PARAMS params = node.Params(function);
  CUgraphNode added = nullptr;
  CHECK_DRIVER(cuGraphAddKernelNode(&added, graph, after.data(), after.size(), &params));
  return added;
}

// Copies in one dimension. Host addresses and device addresses go by their types.
inline void SetSource(CUDA_MEMCPY3D* copy, const void* host) {
  copy->srcMemoryType = CU_MEMORYTYPE_HOST;
  copy->srcHost = host;
}
inline void SetSource(CUDA_MEMCPY3D* copy, CUdeviceptr device) {
  copy->srcMemoryType = CU_MEMORYTYPE_DEVICE;
  copy->srcDevice = device;
}
inline void SetDestination(CUDA_MEMCPY3D* copy, void* host) {
  copy->dstMemoryType = CU_MEMORYTYPE_HOST;
  copy->dstHost = host;
}
inline void SetDestination(CUDA_MEMCPY3D* copy, CUdeviceptr device) {
  copy->dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy->dstDevice = device;
}
template <class Destination, class Source>
CUDA_MEMCPY3D Copy1D(Destination destination, Source source, size_t bytes) {
  CUDA_MEMCPY3D copy = {};
  SetDestination(&copy, destination);
  SetSource(&copy, source);
  copy.WidthInBytes = bytes;
  copy.Height = copy.Depth = 1;
  return copy;
}

inline CUgraphNode AddCopy(CUgraph graph, std::vector<CUgraphNode> after, const CUDA_MEMCPY3D& copy,
                           CUcontext context) {
  CUgraphNode added = nullptr;
  CHECK_DRIVER(cuGraphAddMemcpyNode(&added, graph, after.data(), after.size(), &copy, context));
  return added;
}

inline CUgraphNode AddHost(CUgraph graph, std::vector<CUgraphNode> after, CUhostFn function,
                           void* data) {
  CUDA_HOST_NODE_PARAMS params = {};
  params.fn = function;
  params.userData = data;
  CUgraphNode added = nullptr;
  CHECK_DRIVER(cuGraphAddHostNode(&added, graph, after.data(), after.size(), &params));
  return added;
}
