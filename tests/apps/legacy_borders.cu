// Which actions in the legacy stream are borders between the blocking streams: one of them is held,
// the action follows in the legacy stream, and then work in another blocking stream. Does the
// action wait for the stream that is held, and the other stream's work for the action? The answers
// are those of NVIDIA's driver (580, on an H200).
#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include "check.h"
#include "stream_values.h"

namespace {

__global__ void Nothing() {}

StreamValues values;

void CUDART_CB OnHost(void*) {}

bool Comes(cudaEvent_t event, std::chrono::milliseconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (std::chrono::steady_clock::now() < end) {
    if (cudaEventQuery(event) == cudaSuccess) return true;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return false;
}

// Whether the work of the other stream waits.
enum class Is { kNoBorder, kBorder };

struct Streams {
  cudaStream_t held, other, apart;
  cudaEvent_t over, earlier;
  unsigned* gate;
};

void Try(const Streams& streams, Is is, const char* name, const std::function<void()>& act) {
  reinterpret_cast<std::atomic<unsigned>*>(streams.gate)->store(0);
  CHECK(static_cast<cudaError_t>(values.wait(
      streams.held, reinterpret_cast<CUdeviceptr>(streams.gate), 1, CU_STREAM_WAIT_VALUE_EQ)));
  act();
  Nothing<<<1, 1, 0, streams.other>>>();
  CHECK(cudaEventRecord(streams.over, streams.other));
  if (is == Is::kBorder) {
    EXPECT(!Comes(streams.over, std::chrono::milliseconds(20)), "%s is no border", name);
  } else {
    EXPECT(Comes(streams.over, std::chrono::seconds(20)), "%s is a border", name);
  }
  reinterpret_cast<std::atomic<unsigned>*>(streams.gate)->store(1);
  CHECK(cudaDeviceSynchronize());
}

}  // namespace

int main() {
  Streams streams{};
  CHECK(cudaStreamCreate(&streams.held));
  CHECK(cudaStreamCreate(&streams.other));
  CHECK(cudaStreamCreateWithFlags(&streams.apart, cudaStreamNonBlocking));
  CHECK(cudaEventCreateWithFlags(&streams.over, cudaEventDisableTiming));
  CHECK(cudaEventCreateWithFlags(&streams.earlier, cudaEventDisableTiming));
  CHECK(cudaMallocHost(&streams.gate, 4096));
  unsigned char *device, *pinned, *kept;
  cudaEvent_t timed, plain, reached;
  CHECK(cudaMalloc(&device, 4096));
  CHECK(cudaMallocHost(&pinned, 4096));
  CHECK(cudaEventCreate(&timed));
  CHECK(cudaEventCreateWithFlags(&plain, cudaEventDisableTiming));
  CHECK(cudaEventCreateWithFlags(&reached, cudaEventDisableTiming));
  Nothing<<<1, 1>>>();
  CHECK(cudaMemset(device, 0, 4096));
  CHECK(cudaEventRecord(reached, streams.apart));
  CHECK(cudaDeviceSynchronize());
  const cudaStream_t legacy = cudaStreamLegacy;
  Try(streams, Is::kNoBorder, "nothing", [] {});
  Try(streams, Is::kBorder, "kernel", [&] { Nothing<<<1, 1, 0, legacy>>>(); });
  Try(streams, Is::kBorder, "event without times", [&] { CHECK(cudaEventRecord(plain, legacy)); });
  Try(streams, Is::kBorder, "event with times", [&] { CHECK(cudaEventRecord(timed, legacy)); });
  Try(streams, Is::kBorder, "wait for an event that has come",
      [&] { CHECK(cudaStreamWaitEvent(legacy, reached)); });
  Try(streams, Is::kBorder, "wait for an event of the stream that is held", [&] {
    CHECK(cudaEventRecord(streams.earlier, streams.held));
    CHECK(cudaStreamWaitEvent(legacy, streams.earlier));
  });
  Try(streams, Is::kBorder, "wait of a third stream for an event", [&] {
    CHECK(cudaEventRecord(plain, legacy));
    CHECK(cudaStreamWaitEvent(streams.apart, plain));
  });
  Try(streams, Is::kBorder, "host function",
      [&] { CHECK(cudaLaunchHostFunc(legacy, OnHost, nullptr)); });
  Try(streams, Is::kBorder, "fill", [&] { CHECK(cudaMemsetAsync(device, 1, 4096, legacy)); });
  Try(streams, Is::kBorder, "upload",
      [&] { CHECK(cudaMemcpyAsync(device, pinned, 4096, cudaMemcpyHostToDevice, legacy)); });
  Try(streams, Is::kBorder, "download",
      [&] { CHECK(cudaMemcpyAsync(pinned, device, 4096, cudaMemcpyDeviceToHost, legacy)); });
  Try(streams, Is::kNoBorder, "query", [&] { static_cast<void>(cudaStreamQuery(legacy)); });
  Try(streams, Is::kNoBorder, "allocation", [&] { CHECK(cudaMallocAsync(&kept, 4096, legacy)); });
  Try(streams, Is::kBorder, "free", [&] { CHECK(cudaFreeAsync(kept, legacy)); });
  return Pass("legacy_borders");
}
