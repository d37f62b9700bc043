// A copy from pinned memory brings what is there when its stream gets to it, however the stream is
// held until then: the program writes the memory after it has made the copy, and then lets go. Nor
// does it bring what was there before an earlier copy or host function wrote it. NVIDIA's driver
// takes few bytes at once where only the order with the legacy stream holds them; Longwire does
// not.
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "check.h"
#include "stream_values.h"

namespace {

constexpr size_t kLargestCopy = 3'000'000;

__global__ void SpinUntil(volatile unsigned* flag) {
  while (*flag == 0) {
  }
}

__global__ void TakeLong(unsigned long long nanoseconds) {
  unsigned long long begun = 0, now = 0;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begun));
  do {
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  } while (now - begun < nanoseconds);
}

void CUDART_CB WaitOnHost(void* argument) {
  auto* flag = static_cast<std::atomic<unsigned>*>(argument);
  while (flag->load() == 0) std::this_thread::sleep_for(std::chrono::microseconds(20));
}

enum Hold { kValue, kHostValue, kKernel, kHostFunction, kEvent, kGraph, kLegacy, kLong, kHolds };
const char* const kNames[] = {"a value",           "a value of the host",   "a kernel",
                              "a host function",   "another stream's work", "a graph",
                              "the legacy stream", "a long kernel"};

struct Machine {
  unsigned *flag, *host_flag;
  std::atomic<unsigned> on_host{0};
  cudaStream_t stream, blocking, other, control;
  cudaEvent_t event;
  cudaGraphExec_t graph;
  StreamValues values;
  unsigned char* device;

  Machine() {
    CHECK(cudaMalloc(&flag, sizeof *flag));
    CHECK(cudaMalloc(&device, kLargestCopy));
    CHECK(cudaMallocHost(&host_flag, sizeof *host_flag));
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&control, cudaStreamNonBlocking));
    CHECK(cudaStreamCreate(&blocking));
    CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    cudaGraph_t made;
    CHECK(cudaStreamBeginCapture(other, cudaStreamCaptureModeRelaxed));
    SpinUntil<<<1, 1, 0, other>>>(flag);
    CHECK(cudaStreamEndCapture(other, &made));
    CHECK(cudaGraphInstantiate(&graph, made, 0));
    // What loads code now need not do so behind a held stream.
    CHECK(cudaMemset(flag, 1, sizeof *flag));
    SpinUntil<<<1, 1>>>(flag);
    TakeLong<<<1, 1>>>(1);
    CHECK(cudaGraphLaunch(graph, stream));
    CHECK(cudaDeviceSynchronize());
  }

  // The stream in which the copy is to be made.
  cudaStream_t Take(Hold hold) {
    *host_flag = 0;
    on_host = 0;
    CHECK(cudaMemset(flag, 0, sizeof *flag));
    CHECK(cudaDeviceSynchronize());
    auto wait = [&](cudaStream_t where, unsigned* address) {
      CHECK(static_cast<cudaError_t>(
          values.wait(where, reinterpret_cast<CUdeviceptr>(address), 1, CU_STREAM_WAIT_VALUE_EQ)));
    };
    switch (hold) {
      case kValue:
        wait(stream, flag);
        break;
      case kHostValue:
        wait(stream, host_flag);
        break;
      case kKernel:
        SpinUntil<<<1, 1, 0, stream>>>(flag);
        break;
      case kHostFunction:
        CHECK(cudaLaunchHostFunc(stream, WaitOnHost, &on_host));
        break;
      case kEvent:
        wait(other, flag);
        CHECK(cudaEventRecord(event, other));
        CHECK(cudaStreamWaitEvent(stream, event, 0));
        break;
      case kGraph:
        CHECK(cudaGraphLaunch(graph, stream));
        break;
      case kLegacy:
        wait(cudaStreamLegacy, flag);
        return blocking;
      default:
        TakeLong<<<1, 1, 0, stream>>>(150'000'000);
    }
    CHECK(cudaGetLastError());
    return stream;
  }

  void LetGo(Hold hold) {
    if (hold == kLong) return;
    if (hold == kHostFunction) {
      on_host = 1;
    } else if (hold == kHostValue) {
      reinterpret_cast<std::atomic<unsigned>*>(host_flag)->store(1);
    } else {
      CHECK(static_cast<cudaError_t>(
          values.write(control, reinterpret_cast<CUdeviceptr>(flag), 1, 0)));
    }
  }
};

enum Form { kPlain, kRows, kBatch, kForms };

void Copy(Form form, unsigned char* to, const unsigned char* from, size_t bytes,
          cudaStream_t stream) {
  if (form == kRows) {
    // Every second of 16 parts, each to its place.
    const size_t pitch = bytes / 8;
    CHECK(cudaMemcpy2DAsync(to, pitch, from, pitch, pitch / 2, 8, cudaMemcpyHostToDevice, stream));
    CHECK(cudaMemcpy2DAsync(to + pitch / 2, pitch, from + pitch / 2, pitch, pitch - pitch / 2, 8,
                            cudaMemcpyHostToDevice, stream));
  } else if (form == kBatch) {
    const void* sources[2] = {from, from + bytes / 2};
    void* targets[2] = {to, to + bytes / 2};
    size_t sizes[2] = {bytes / 2, bytes - bytes / 2}, zero = 0;
    cudaMemcpyAttributes attributes = {};
    attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
    CHECK(cudaMemcpyBatchAsync(targets, sources, sizes, 2, &attributes, &zero, 1, stream));
  } else {
    CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream));
  }
}

#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
constexpr bool kOwnStreamPerThread = true;
#else
constexpr bool kOwnStreamPerThread = false;
#endif

// True if a copy of this size must wait for the work that the legacy stream holds.
bool IsHeldByLegacy(size_t bytes) {
  static const bool always = IsSoftwareDevice();
  return always || bytes > 65'536;
}

void Expect(Machine& machine, size_t bytes, unsigned char wanted, const char* how,
            const char* kind) {
  std::vector<unsigned char> back(bytes);
  CHECK(cudaMemcpy(back.data(), machine.device, bytes, cudaMemcpyDeviceToHost));
  for (size_t i = 0; i < bytes; ++i) {
    EXPECT(back[i] == wanted, "%s memory, %zu bytes behind %s: byte %zu is %d, not %d", kind, bytes,
           how, i, back[i], wanted);
  }
}

// One round; false if it took so long that the long kernel may have been over before the write.
bool WriteOnceLate(Machine& machine, unsigned char* host, const char* kind, Hold hold, Form form,
                   size_t bytes, unsigned char value) {
  std::memset(host, 0, bytes);
  auto begun = std::chrono::steady_clock::now();
  cudaStream_t stream = machine.Take(hold);
  Copy(form, machine.device, host, bytes, stream);
  if (bytes == 64) std::this_thread::sleep_for(std::chrono::milliseconds(3));
  std::memset(host, value, bytes);
  auto taken = std::chrono::steady_clock::now() - begun;
  bool in_time = hold != kLong || taken < std::chrono::milliseconds(75);
  machine.LetGo(hold);
  CHECK(cudaStreamSynchronize(stream));
  const size_t least = form == kBatch ? bytes / 2 : bytes;
  bool held = hold != kLegacy || IsHeldByLegacy(least);
  if (in_time && held) Expect(machine, bytes, value, kNames[hold], kind);
  CHECK(cudaDeviceSynchronize());
  return in_time;
}

void WriteLate(Machine& machine, unsigned char* host, const char* kind) {
  unsigned char value = 0;
  for (int hold = 0; hold < kHolds; ++hold) {
    for (size_t bytes : {size_t{64}, size_t{40'000}, size_t{200'000}, kLargestCopy}) {
      const int forms = hold == kLong ? 1 : kForms;
      for (int form = 0; form < forms; ++form) {
        bytes = form == kRows ? bytes / 8 * 8 : bytes;
        while (!WriteOnceLate(machine, host, kind, static_cast<Hold>(hold), static_cast<Form>(form),
                              bytes, ++value)) {
        }
      }
    }
  }
}

// Down and up again, by streams that are in order for one reason or another.
void Bounce(Machine& machine, unsigned char* host, const char* kind) {
  unsigned char* source;
  CHECK(cudaMalloc(&source, kLargestCopy));
  unsigned char value = 100;
  for (int round = 0; round < 4; ++round) {
    for (size_t bytes : {size_t{16}, size_t{4096}, size_t{100'001}, kLargestCopy}) {
      for (int way = 0; way < 4; ++way) {
        CHECK(cudaMemset(source, ++value, bytes));
        CHECK(cudaDeviceSynchronize());
        std::memset(host, 0, bytes);
        cudaStream_t first = way < 2    ? machine.stream
                             : way == 2 ? machine.blocking
                                        : cudaStreamLegacy;
        cudaStream_t second = way == 0   ? first
                              : way == 1 ? machine.other
                              : way == 2 ? cudaStreamLegacy
                                         : machine.blocking;
        CHECK(cudaMemcpyAsync(host, source, bytes, cudaMemcpyDeviceToHost, first));
        if (way == 1) {
          CHECK(cudaEventRecord(machine.event, first));
          CHECK(cudaStreamWaitEvent(second, machine.event, 0));
        }
        CHECK(cudaMemcpyAsync(machine.device, host, bytes, cudaMemcpyHostToDevice, second));
        CHECK(cudaStreamSynchronize(second));
        if (way < 2 || IsHeldByLegacy(bytes)) Expect(machine, bytes, value, "a copy down", kind);
        CHECK(cudaDeviceSynchronize());
      }
    }
  }
  CHECK(cudaFree(source));
}

// While one thread waits for its copy another one writes what it copies, and lets the stream go.
void WaitForIt(Machine& machine, unsigned char* host) {
  for (size_t bytes : {size_t{64}, size_t{200'000}, kLargestCopy}) {
    std::memset(host, 0, bytes);
    machine.Take(kLegacy);
    std::thread other([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      std::memset(host, 77, bytes);
      machine.LetGo(kLegacy);
    });
    CHECK(cudaMemcpyAsync(machine.device, host, bytes, cudaMemcpyHostToDevice, cudaStreamLegacy));
    CHECK(cudaStreamSynchronize(cudaStreamLegacy));
    other.join();
    Expect(machine, bytes, 77, "the legacy stream", "pinned");
    std::memset(host, 0, bytes);
    machine.Take(kLegacy);
    std::thread again([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      std::memset(host, 78, bytes);
      machine.LetGo(kLegacy);
    });
    CHECK(cudaMemcpy(machine.device, host, bytes, cudaMemcpyHostToDevice));
    again.join();
    // Built for streams per thread, the copy is not the legacy stream's own.
    if (!kOwnStreamPerThread || IsHeldByLegacy(bytes)) {
      Expect(machine, bytes, 78, "a waiting copy's stream", "pinned");
    }
  }
}

}  // namespace

int main() {
  Machine machine;
  unsigned char *pinned, *mapped;
  CHECK(cudaMallocHost(&pinned, kLargestCopy));
  std::vector<unsigned char> block(kLargestCopy + 1000);
  unsigned char* registered = block.data() + 1000;
  CHECK(cudaHostRegister(registered, kLargestCopy, cudaHostRegisterDefault));
  WriteLate(machine, pinned, "pinned");
  WriteLate(machine, registered, "registered");
  Bounce(machine, pinned, "pinned");
  Bounce(machine, registered, "registered");
  WaitForIt(machine, pinned);
  // Copies from what kernels reach are the device's own.
  CHECK(cudaHostAlloc(&mapped, kLargestCopy, cudaHostAllocMapped));
  void* there = nullptr;
  CHECK(cudaHostGetDevicePointer(&there, mapped, 0));
  WriteLate(machine, mapped, "mapped");
  Bounce(machine, mapped, "mapped");
  return Pass("held_uploads");
}
