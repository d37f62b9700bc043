// Attributes of launches: priorities, launches that may begin early, clusters, and events that a
// launch records, also into a graph; and what of them is refused at once.
#include <vector>

#include "check.h"

constexpr int kCount = 1024;

__global__ void Add(int* values, int by) { values[blockIdx.x * blockDim.x + threadIdx.x] += by; }

__global__ void Copy(int* to, const int* from) {
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();  // in a graph it may begin before what it copies is there
#endif
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  to[i] = from[i];
}

struct Launch {
  cudaLaunchConfig_t config = {};
  std::vector<cudaLaunchAttribute> attributes;

  explicit Launch(cudaStream_t stream) {
    config.gridDim = kCount / 128;
    config.blockDim = 128;
    config.stream = stream;
  }
  cudaLaunchAttributeValue& With(cudaLaunchAttributeID id) {
    attributes.push_back({});
    attributes.back().id = id;
    return attributes.back().val;
  }
  cudaError_t Run(int* values, int by) {
    config.attrs = attributes.data();
    config.numAttrs = static_cast<unsigned>(attributes.size());
    return cudaLaunchKernelEx(&config, Add, values, by);
  }
};

static void ExpectAll(const int* device, int expected) {
  std::vector<int> host(kCount);
  CHECK(cudaMemcpy(host.data(), device, kCount * sizeof(int), cudaMemcpyDeviceToHost));
  for (int value : host) EXPECT(value == expected, "%d, not %d", value, expected);
}

static void Hints(int* values, cudaStream_t stream) {
  int least = 0, greatest = 0;
  CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  Launch launch(stream);
  launch.With(cudaLaunchAttributePriority).priority = greatest;
  launch.With(cudaLaunchAttributeProgrammaticStreamSerialization)
      .programmaticStreamSerializationAllowed = 1;
  launch.With(cudaLaunchAttributeIgnore);
  for (int i = 0; i < 5; ++i) CHECK(launch.Run(values, 1));
  CHECK(cudaStreamSynchronize(stream));
  ExpectAll(values, 5);
}

static void Clusters(int* values, cudaStream_t stream) {
  int clusters = 0;
  CHECK(cudaDeviceGetAttribute(&clusters, cudaDevAttrClusterLaunch, 0));
  for (const unsigned size : {1u, 2u, 3u, 32u}) {
    Launch launch(stream);
    if (size == 32) launch.config.gridDim = 32;
    auto& cluster = launch.With(cudaLaunchAttributeClusterDimension).clusterDim;
    cluster.x = size;
    cluster.y = cluster.z = 1;
    const cudaError_t result = launch.Run(values, size == 32 ? 0 : 1);
    const bool fits = size == 1 || (size == 2 && clusters != 0);
    EXPECT((result == cudaSuccess) == fits, "a cluster of %u blocks: %d", size, result);
    EXPECT(size != 32 || clusters == 0 || result == cudaErrorInvalidClusterSize, "%d", result);
    EXPECT(fits || cudaGetLastError() == result, "the error is not the last one");
  }
  CHECK(cudaStreamSynchronize(stream));
  ExpectAll(values, clusters != 0 ? 2 : 1);
}

// Two attributes name an event: behind either, another stream sees what the kernel wrote.
static void Events(int* values, int* copy, cudaStream_t stream, cudaStream_t other, bool at_end) {
  cudaEvent_t event;
  CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  Launch launch(stream);
  if (at_end) {
    launch.With(cudaLaunchAttributeLaunchCompletionEvent).launchCompletionEvent.event = event;
  } else {
    launch.With(cudaLaunchAttributeProgrammaticEvent).programmaticEvent.event = event;
  }
  CHECK(launch.Run(values, 4));
  CHECK(cudaStreamWaitEvent(other, event, 0));
  // The kernel may not be done when all of its blocks have begun.
  if (at_end) CHECK(cudaStreamSynchronize(stream));
  Copy<<<kCount / 128, 128, 0, other>>>(copy, values);
  CHECK(cudaEventSynchronize(event));
  CHECK(cudaStreamSynchronize(other));
  CHECK(cudaEventQuery(event));
  ExpectAll(copy, 4);
  CHECK(cudaEventDestroy(event));
}

static void InAGraph(int* values, int* copy, cudaStream_t stream, cudaStream_t other) {
  cudaEvent_t event, joined;
  CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  CHECK(cudaEventCreateWithFlags(&joined, cudaEventDisableTiming));
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  Launch launch(stream);
  launch.With(cudaLaunchAttributeProgrammaticEvent).programmaticEvent.event = event;
  CHECK(launch.Run(values, 1));
  CHECK(cudaStreamWaitEvent(other, event, 0));
  cudaStreamCaptureStatus status;
  CHECK(cudaStreamIsCapturing(other, &status));
  EXPECT(status == cudaStreamCaptureStatusActive, "the event brought no capture along");
  Copy<<<kCount / 128, 128, 0, other>>>(copy, values);
  CHECK(cudaEventRecord(joined, other));
  CHECK(cudaStreamWaitEvent(stream, joined, 0));
  cudaGraph_t graph;
  CHECK(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t exec;
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  for (int round = 1; round <= 3; ++round) {
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    ExpectAll(copy, round);
  }
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
}

static void Mistakes(int* values, cudaStream_t stream) {
  cudaEvent_t timed;
  CHECK(cudaEventCreate(&timed));
  for (const auto id :
       {cudaLaunchAttributeProgrammaticEvent, cudaLaunchAttributeLaunchCompletionEvent}) {
    for (const cudaEvent_t event : {timed, cudaEvent_t{}}) {
      Launch launch(stream);
      if (id == cudaLaunchAttributeProgrammaticEvent) {
        launch.With(id).programmaticEvent.event = event;
      } else {
        launch.With(id).launchCompletionEvent.event = event;
      }
      const cudaError_t result = launch.Run(values, 100);
      EXPECT(result != cudaSuccess, "attribute %d with a wrong event", id);
      EXPECT(cudaGetLastError() == result, "the error is not the last one");
    }
  }
  CHECK(cudaStreamSynchronize(stream));
  ExpectAll(values, 0);
}

int main() {
  cudaStream_t stream, other;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  int *values = nullptr, *copy = nullptr;
  CHECK(cudaMalloc(&values, kCount * sizeof(int)));
  CHECK(cudaMalloc(&copy, kCount * sizeof(int)));
  // The streams do not wait for the default one.
  const auto clear = [&] {
    CHECK(cudaMemset(values, 0, kCount * sizeof(int)));
    CHECK(cudaDeviceSynchronize());
  };
  clear();
  Hints(values, stream);
  clear();
  Clusters(values, stream);
  for (const bool at_end : {false, true}) {
    clear();
    Events(values, copy, stream, other, at_end);
  }
  clear();
  InAGraph(values, copy, stream, other);
  clear();
  Mistakes(values, stream);
  return Pass("launch_attributes");
}
