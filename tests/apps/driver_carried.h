// What the kinds of driver_carried.cc have in common: memory with a model on the host.
#pragma once

#include <string>
#include <vector>

#include "driver_add.h"
#include "driver_check.h"

constexpr unsigned kCount = 1024, kBlock = 256;

struct Kernel {
  CUfunction add = nullptr;
  explicit Kernel(const void* image) {
    CUmodule module = nullptr;
    CHECK_DRIVER(cuModuleLoadData(&module, image));
    CHECK_DRIVER(cuModuleGetFunction(&add, module, "Add"));
  }
  void Launch(CUdeviceptr memory, CUstream stream) const {
    unsigned count = kCount;
    void* parameters[] = {&memory, &count};
    CHECK_DRIVER(
        cuLaunchKernel(add, kCount / kBlock, 1, 1, kBlock, 1, 1, 0, stream, parameters, nullptr));
  }
  // The same launch as a node of a graph; `parameters` are the memory and the count.
  CUDA_KERNEL_NODE_PARAMS Node(void** parameters) const {
    CUDA_KERNEL_NODE_PARAMS node{};
    node.func = add;
    node.gridDimX = kCount / kBlock;
    node.gridDimY = node.gridDimZ = node.blockDimY = node.blockDimZ = 1;
    node.blockDimX = kBlock;
    node.kernelParams = parameters;
    return node;
  }
};

struct Memory {
  CUdeviceptr address = 0;
  std::vector<unsigned> model;

  explicit Memory(unsigned first) : model(kCount) {
    for (unsigned i = 0; i < kCount; ++i) model[i] = first + i * 7;
    CHECK_DRIVER(cuMemAlloc(&address, kCount * sizeof(unsigned)));
    CHECK_DRIVER(cuMemcpyHtoD(address, model.data(), kCount * sizeof(unsigned)));
  }
  void Added() {
    for (unsigned& one : model) one += 5;
  }
  void Expect(const char* what) const {
    std::vector<unsigned> found(kCount);
    CHECK_DRIVER(cuMemcpyDtoH(found.data(), address, kCount * sizeof(unsigned)));
    for (unsigned i = 0; i < kCount; ++i) {
      EXPECT(found[i] == model[i], "%s: element %u is %u, not %u", what, i, found[i], model[i]);
    }
  }
};
