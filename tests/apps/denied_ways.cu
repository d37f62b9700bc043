// For the tests of rules: every way that a program has to launch a kernel, to copy and to fill.
// Each prints its name and whether it took effect. Between two of them only kernels are used, and
// memory that they share with the program.
//   denied_ways kernels | up | down | fills
#include <functional>
#include <string>
#include <vector>

#include "check.h"

namespace {

constexpr size_t kHostBytes = size_t{2} << 20;
constexpr size_t kSizes[] = {1, 4096, 100'000, 600'000, kHostBytes};

unsigned char* device;
cudaStream_t stream;
volatile int* seen;  // what a kernel found
int* seen_there;

__global__ void Wanted(unsigned char* to, unsigned char value) { *to = value; }
__global__ void Other(unsigned char* to, unsigned char value) {
  if (value == 0) *to = value;
}
__global__ void Set(unsigned char* to, unsigned char value) { *to = value; }
__global__ void Look(const unsigned char* at, int* found) { *found = *at; }

unsigned char Found(const unsigned char* at) {
  Look<<<1, 1>>>(at, seen_there);
  CHECK(cudaDeviceSynchronize());
  return static_cast<unsigned char>(*seen);
}

// What a way does with a byte of the device's memory; an error is its own affair.
using Way = std::function<cudaError_t(unsigned char value)>;

unsigned char NextValue() {
  static unsigned char value = 0;
  return value += 2;
}

void Tell(const std::string& name, bool took) {
  std::printf("%s %s\n", name.c_str(), took ? "done" : "refused");
}

void TryOnDevice(const std::string& name, const Way& way) {
  const unsigned char value = NextValue();
  Set<<<1, 1>>>(device, 1);
  CHECK(cudaDeviceSynchronize());
  const cudaError_t called = way(value), waited = cudaDeviceSynchronize();
  cudaGetLastError();
  const bool took = Found(device) == value;
  EXPECT(took == (called == cudaSuccess && waited == cudaSuccess), "%s: %d and %d", name.c_str(),
         called, waited);
  Tell(name, took);
}

cudaError_t LaunchGraph(cudaGraph_t graph) {
  cudaGraphExec_t exec = nullptr;
  cudaError_t result = cudaGraphInstantiate(&exec, graph, 0);
  return result != cudaSuccess ? result : cudaGraphLaunch(exec, stream);
}

cudaError_t Captured(const std::function<void()>& work) {
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  work();
  const cudaError_t result = cudaStreamEndCapture(stream, &graph);
  return result != cudaSuccess ? result : LaunchGraph(graph);
}

cudaError_t Built(const std::function<cudaError_t(cudaGraph_t, cudaGraphNode_t*)>& add) {
  cudaGraph_t graph = nullptr;
  cudaGraphNode_t node = nullptr;
  CHECK(cudaGraphCreate(&graph, 0));
  const cudaError_t result = add(graph, &node);
  return result != cudaSuccess ? result : LaunchGraph(graph);
}

struct Kernel {
  unsigned char value;
  void* arguments[2] = {&device, &value};
  cudaKernelNodeParams Of(void* function) {
    cudaKernelNodeParams params{};
    params.func = function;
    params.gridDim = params.blockDim = 1;
    params.kernelParams = arguments;
    return params;
  }
};

void Kernels() {
  auto* wanted = reinterpret_cast<void*>(Wanted);
  auto* other = reinterpret_cast<void*>(Other);
  TryOnDevice("launch", [&](unsigned char value) {
    Wanted<<<1, 1, 0, stream>>>(device, value);
    return cudaGetLastError();
  });
  TryOnDevice("cooperative", [&](unsigned char value) {
    Kernel kernel{value};
    return cudaLaunchCooperativeKernel(wanted, 1, 1, kernel.arguments, 0, stream);
  });
  TryOnDevice("captured", [&](unsigned char value) {
    return Captured([&] { Wanted<<<1, 1, 0, stream>>>(device, value); });
  });
  TryOnDevice("node", [&](unsigned char value) {
    return Built([&](cudaGraph_t graph, cudaGraphNode_t* node) {
      const cudaKernelNodeParams params = Kernel{value}.Of(wanted);
      return cudaGraphAddKernelNode(node, graph, nullptr, 0, &params);
    });
  });
  TryOnDevice("changed-node", [&](unsigned char value) {
    return Built([&](cudaGraph_t graph, cudaGraphNode_t* node) {
      Kernel kernel{value};
      const cudaKernelNodeParams before = kernel.Of(other), after = kernel.Of(wanted);
      CHECK(cudaGraphAddKernelNode(node, graph, nullptr, 0, &before));
      return cudaGraphKernelNodeSetParams(*node, &after);
    });
  });
  TryOnDevice("changed-executable", [&](unsigned char value) {
    cudaGraph_t graph = nullptr;
    cudaGraphNode_t node = nullptr;
    cudaGraphExec_t exec = nullptr;
    Kernel kernel{value};
    const cudaKernelNodeParams before = kernel.Of(other), after = kernel.Of(wanted);
    CHECK(cudaGraphCreate(&graph, 0));
    CHECK(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &before));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    const cudaError_t result = cudaGraphExecKernelNodeSetParams(exec, node, &after);
    return result != cudaSuccess ? result : cudaGraphLaunch(exec, stream);
  });
  TryOnDevice("generic-node", [&](unsigned char value) {
    return Built([&](cudaGraph_t graph, cudaGraphNode_t* node) {
      Kernel kernel{value};
      cudaGraphNodeParams params{};
      params.type = cudaGraphNodeTypeKernel;
      params.kernel.func = wanted;
      params.kernel.gridDim = params.kernel.blockDim = 1;
      params.kernel.kernelParams = kernel.arguments;
      return cudaGraphAddNode(node, graph, nullptr, nullptr, 0, &params);
    });
  });
}

// Memory of the program by its kind; mapped memory is known to kernels before the copy.
struct Host {
  const char* name;
  unsigned char* bytes;
};

std::vector<Host> Hosts() {
  std::vector<Host> hosts{{"pageable", new unsigned char[kHostBytes]},
                          {"pinned", nullptr},
                          {"mapped", nullptr},
                          {"registered", new unsigned char[kHostBytes]}};
  void* there = nullptr;
  CHECK(cudaMallocHost(&hosts[1].bytes, kHostBytes));
  CHECK(cudaHostAlloc(&hosts[2].bytes, kHostBytes, cudaHostAllocMapped));
  CHECK(cudaHostGetDevicePointer(&there, hosts[2].bytes, 0));
  Set<<<1, 1>>>(static_cast<unsigned char*>(there), 1);
  CHECK(cudaHostRegister(hosts[3].bytes, kHostBytes, cudaHostRegisterMapped));
  CHECK(cudaDeviceSynchronize());
  return hosts;
}

void Up() {
  for (const Host& host : Hosts()) {
    for (const size_t bytes : kSizes) {
      TryOnDevice("up-" + std::string(host.name) + "-" + std::to_string(bytes),
                  [&](unsigned char value) {
                    host.bytes[0] = value;
                    return cudaMemcpyAsync(device, host.bytes, bytes, cudaMemcpyDefault, stream);
                  });
    }
    TryOnDevice(std::string("up-rows-") + host.name, [&](unsigned char value) {
      host.bytes[0] = value;
      return cudaMemcpy2D(device, 100, host.bytes, 90, 80, 10, cudaMemcpyHostToDevice);
    });
    TryOnDevice(std::string("up-node-") + host.name, [&](unsigned char value) {
      host.bytes[0] = value;
      return Built([&](cudaGraph_t graph, cudaGraphNode_t* node) {
        return cudaGraphAddMemcpyNode1D(node, graph, nullptr, 0, device, host.bytes, 1,
                                        cudaMemcpyHostToDevice);
      });
    });
    if (std::string(host.name) == "pageable") continue;
    TryOnDevice(std::string("up-captured-") + host.name, [&](unsigned char value) {
      host.bytes[0] = value;
      return Captured(
          [&] { cudaMemcpyAsync(device, host.bytes, 1, cudaMemcpyHostToDevice, stream); });
    });
  }
}

void TryDown(const std::string& name, unsigned char* host,
             const std::function<cudaError_t()>& copy) {
  const unsigned char value = NextValue();
  Set<<<1, 1>>>(device, value);
  CHECK(cudaDeviceSynchronize());
  *host = 1;
  copy();
  cudaDeviceSynchronize();
  cudaGetLastError();
  Tell(name, *host == value);
}

void Down() {
  for (const Host& host : Hosts()) {
    unsigned char* to = host.bytes;
    for (const size_t bytes : kSizes) {
      TryDown("down-" + std::string(host.name) + "-" + std::to_string(bytes), to,
              [&] { return cudaMemcpyAsync(to, device, bytes, cudaMemcpyDefault, stream); });
    }
    TryDown(std::string("down-rows-") + host.name, to,
            [&] { return cudaMemcpy2D(to, 100, device, 90, 80, 10, cudaMemcpyDeviceToHost); });
    TryDown(std::string("down-node-") + host.name, to, [&] {
      return Built([&](cudaGraph_t graph, cudaGraphNode_t* node) {
        return cudaGraphAddMemcpyNode1D(node, graph, nullptr, 0, to, device, 1,
                                        cudaMemcpyDeviceToHost);
      });
    });
    if (std::string(host.name) == "pageable") continue;
    TryDown(std::string("down-captured-") + host.name, to, [&] {
      return Captured([&] { cudaMemcpyAsync(to, device, 1, cudaMemcpyDeviceToHost, stream); });
    });
  }
}

cudaMemsetParams FillOf(unsigned char value) {
  cudaMemsetParams params{};
  params.dst = device;
  params.elementSize = params.width = params.height = 1;
  params.value = value;
  return params;
}

void Fills() {
  TryOnDevice("fill", [](unsigned char value) { return cudaMemset(device, value, 1); });
  TryOnDevice("fill-rows", [](unsigned char value) {
    return cudaMemset2DAsync(device, 64, value, 8, 8, stream);
  });
  TryOnDevice("fill-captured", [](unsigned char value) {
    return Captured([&] { cudaMemsetAsync(device, value, 1, stream); });
  });
  TryOnDevice("fill-node", [](unsigned char value) {
    return Built([&](cudaGraph_t graph, cudaGraphNode_t* node) {
      const cudaMemsetParams params = FillOf(value);
      return cudaGraphAddMemsetNode(node, graph, nullptr, 0, &params);
    });
  });
  TryOnDevice("within-device", [](unsigned char value) {
    Set<<<1, 1>>>(device + 4096, value);
    CHECK(cudaDeviceSynchronize());
    return cudaMemcpyAsync(device, device + 4096, 1, cudaMemcpyDeviceToDevice, stream);
  });
  TryOnDevice("within-device-node", [](unsigned char value) {
    Set<<<1, 1>>>(device + 4096, value);
    CHECK(cudaDeviceSynchronize());
    return Built([&](cudaGraph_t graph, cudaGraphNode_t* node) {
      return cudaGraphAddMemcpyNode1D(node, graph, nullptr, 0, device, device + 4096, 1,
                                      cudaMemcpyDeviceToDevice);
    });
  });
}

}  // namespace

int main(int count, char** arguments) {
  CHECK(cudaMalloc(&device, kHostBytes));
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  int* words = nullptr;
  CHECK(cudaHostAlloc(&words, sizeof *words, cudaHostAllocMapped));
  CHECK(cudaHostGetDevicePointer(&seen_there, words, 0));
  seen = words;
  const std::string what = count > 1 ? arguments[1] : "kernels";
  if (what == "kernels") Kernels();
  if (what == "up") Up();
  if (what == "down") Down();
  if (what == "fills") Fills();
  return Pass("denied_ways");
}
