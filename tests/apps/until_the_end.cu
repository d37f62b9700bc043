// For the tests of sessions that end: one kind of work, round after round, until a call fails or
// the time is over. What a call that succeeded has promised is looked at every time; after the
// first failure no call may succeed any more.
//
//   until_the_end KIND SECONDS|stdin [BUSY]
//
// stdin: until its standard input ends.
// BUSY: milliseconds of each kernel after the first round.
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "check.h"
#include "time_to_run.h"
#include "try.h"

constexpr int kCount = 1024;
constexpr size_t kBytes = kCount * sizeof(unsigned);
constexpr size_t kManyBytes = size_t{4} << 20;

constexpr char kCode[] = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry Loaded(.param .u64 to, .param .u32 value)
{
  .reg .u64 %address;
  .reg .u32 %value;
  ld.param.u64 %address, [to];
  ld.param.u32 %value, [value];
  cvta.to.global.u64 %address, %address;
  st.global.u32 [%address], %value;
  ret;
}
)";

__global__ void Fill(unsigned* to, unsigned value, unsigned long long nanoseconds) {
  unsigned long long begin, now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
  do {
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  } while (now - begin < nanoseconds);
  for (int i = threadIdx.x; i < kCount; i += blockDim.x) to[i] = value + i;
}

__global__ void Count(unsigned* to) { ++*to; }

static unsigned long long busy = 2'000'000;  // nanoseconds of a kernel

static unsigned *device, *managed, *pinned, *registered;
static char *many_device, *many_pinned;
static std::vector<char> many(kManyBytes);
static cudaStream_t stream;
static cudaEvent_t event;

static void ExpectFilled(const unsigned* from, unsigned value, const char* what) {
  for (int i = 0; i < kCount; ++i) {
    EXPECT(from[i] == value + i, "%s: element %d is %u and not %u", what, i, from[i], value + i);
  }
}

static cudaError_t FillManaged(unsigned round) {
  Fill<<<1, 32, 0, stream>>>(managed, round, busy);
  return cudaGetLastError();
}

static cudaError_t WaitDevice(unsigned round) {
  TRY(FillManaged(round));
  TRY(cudaDeviceSynchronize());
  ExpectFilled(managed, round, "cudaDeviceSynchronize");
  return cudaSuccess;
}

static cudaError_t WaitStream(unsigned round) {
  TRY(FillManaged(round));
  TRY(cudaStreamSynchronize(stream));
  ExpectFilled(managed, round, "cudaStreamSynchronize");
  return cudaSuccess;
}

static cudaError_t WaitEvent(unsigned round) {
  TRY(FillManaged(round));
  TRY(cudaEventRecord(event, stream));
  TRY(cudaEventSynchronize(event));
  ExpectFilled(managed, round, "cudaEventSynchronize");
  return cudaSuccess;
}

static cudaError_t Poll(unsigned round) {
  TRY(FillManaged(round));
  TRY(cudaEventRecord(event, stream));
  cudaError_t code = cudaErrorNotReady;
  while (code == cudaErrorNotReady) {
    code = round % 2 == 0 ? cudaEventQuery(event) : cudaStreamQuery(stream);
  }
  TRY(code);
  ExpectFilled(managed, round, "a query");
  return cudaSuccess;
}

static cudaError_t Launch(unsigned) {
  constexpr unsigned kLaunches = 50;
  static unsigned launched = 0;
  for (unsigned i = 0; i < kLaunches; ++i) {
    Count<<<1, 1, 0, stream>>>(device);
    TRY(cudaGetLastError());
  }
  launched += kLaunches;
  unsigned counted = 0;
  TRY(cudaStreamSynchronize(stream));
  TRY(cudaMemcpy(&counted, device, sizeof counted, cudaMemcpyDeviceToHost));
  EXPECT(counted == launched, "%u of %u launches", counted, launched);
  return cudaSuccess;
}

struct Seen {
  unsigned round = 0;
  bool ran = false;
};

static cudaError_t HostFunction(unsigned round) {
  Seen seen{round};
  TRY(FillManaged(round));
  TRY(cudaLaunchHostFunc(
      stream,
      [](void* data) {
        auto* told = static_cast<Seen*>(data);
        ExpectFilled(managed, told->round, "a host function");
        told->ran = true;
      },
      &seen));
  TRY(cudaStreamSynchronize(stream));
  EXPECT(seen.ran, "the host function has not run");
  return cudaSuccess;
}

static cudaError_t Unregister(unsigned round) {
  TRY(cudaHostRegister(registered, kBytes, cudaHostRegisterDefault));
  Fill<<<1, 32, 0, stream>>>(device, round, busy);
  TRY(cudaMemcpyAsync(registered, device, kBytes, cudaMemcpyDeviceToHost, stream));
  TRY(cudaHostUnregister(registered));
  ExpectFilled(registered, round, "cudaHostUnregister");
  return cudaSuccess;
}

static cudaError_t FreeHost(unsigned round) {
  unsigned* beside = nullptr;
  TRY(cudaMallocHost(&beside, kBytes));
  TRY(FillManaged(round));
  TRY(cudaMemcpyAsync(beside, managed, kBytes, cudaMemcpyDefault, stream));
  TRY(cudaFreeHost(beside));
  ExpectFilled(managed, round, "cudaFreeHost");
  return cudaSuccess;
}

static cudaError_t CopyDown(unsigned round) {
  static unsigned host[kCount];
  Fill<<<1, 32>>>(device, round, busy);
  TRY(cudaMemcpy(host, device, kBytes, cudaMemcpyDeviceToHost));
  ExpectFilled(host, round, "cudaMemcpy to the host");
  TRY(cudaMemset(many_device, static_cast<int>(round & 0x7f), kManyBytes));
  TRY(cudaMemcpy(many.data(), many_device, kManyBytes, cudaMemcpyDeviceToHost));
  for (char byte : many) EXPECT(byte == static_cast<char>(round & 0x7f), "a byte is %d", byte);
  return cudaSuccess;
}

static cudaError_t CopyPinned(unsigned round) {
  Fill<<<1, 32, 0, stream>>>(device, round, busy);
  TRY(cudaMemcpyAsync(pinned, device, kBytes, cudaMemcpyDeviceToHost, stream));
  TRY(cudaMemsetAsync(many_device, static_cast<int>(round & 0x7f), kManyBytes, stream));
  TRY(cudaMemcpyAsync(many_pinned, many_device, kManyBytes, cudaMemcpyDeviceToHost, stream));
  TRY(cudaStreamSynchronize(stream));
  ExpectFilled(pinned, round, "a copy to pinned memory");
  for (size_t i = 0; i < kManyBytes; ++i) {
    EXPECT(many_pinned[i] == static_cast<char>(round & 0x7f), "byte %zu is %d", i, many_pinned[i]);
  }
  return cudaSuccess;
}

static cudaError_t CopyUp(unsigned round) {
  std::memset(many.data(), static_cast<int>(round & 0x7f), kManyBytes);
  TRY(cudaMemcpy(many_device, many.data(), kManyBytes, cudaMemcpyHostToDevice));
  std::memset(many.data(), -1, kManyBytes);
  TRY(cudaMemcpy(many_pinned, many_device, kManyBytes, cudaMemcpyDeviceToHost));
  for (size_t i = 0; i < kManyBytes; ++i) {
    EXPECT(many_pinned[i] == static_cast<char>(round & 0x7f), "byte %zu is %d", i, many_pinned[i]);
  }
  return cudaSuccess;
}

static cudaError_t Allocate(unsigned round) {
  unsigned *some = nullptr, *ordered = nullptr, value = 0;
  TRY(cudaMalloc(&some, (1 + round % 5) << 20));
  TRY(cudaMallocAsync(&ordered, kBytes, stream));
  Fill<<<1, 32, 0, stream>>>(ordered, round, 0);
  TRY(cudaMemcpyAsync(some, ordered, kBytes, cudaMemcpyDeviceToDevice, stream));
  TRY(cudaFreeAsync(ordered, stream));
  TRY(cudaStreamSynchronize(stream));
  TRY(cudaMemcpy(&value, some, sizeof value, cudaMemcpyDeviceToHost));
  EXPECT(value == round, "%u and not %u", value, round);
  TRY(cudaFree(some));
  return cudaSuccess;
}

static cudaError_t Load(unsigned round) {
  cudaLibrary_t library;
  cudaKernel_t kernel;
  unsigned value = 0;
  TRY(cudaLibraryLoadData(&library, kCode, nullptr, nullptr, 0, nullptr, nullptr, 0));
  TRY(cudaLibraryGetKernel(&kernel, library, "Loaded"));
  void* parameters[] = {&device, &round};
  TRY(cudaLaunchKernel(kernel, dim3(1), dim3(1), parameters, 0, nullptr));
  TRY(cudaMemcpy(&value, device, sizeof value, cudaMemcpyDeviceToHost));
  EXPECT(value == round, "%u and not %u", value, round);
  TRY(cudaLibraryUnload(library));
  return cudaSuccess;
}

static cudaError_t Graph(unsigned round) {
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  TRY(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  Fill<<<1, 32, 0, stream>>>(device, round, busy);
  TRY(cudaMemcpyAsync(pinned, device, kBytes, cudaMemcpyDeviceToHost, stream));
  TRY(cudaStreamEndCapture(stream, &graph));
  TRY(cudaGraphInstantiate(&exec, graph, 0));
  TRY(cudaGraphLaunch(exec, stream));
  TRY(cudaStreamSynchronize(stream));
  ExpectFilled(pinned, round, "a graph");
  TRY(cudaGraphExecDestroy(exec));
  TRY(cudaGraphDestroy(graph));
  return cudaSuccess;
}

struct Kind {
  const char* name;
  cudaError_t (*round)(unsigned);
};

static const Kind kKinds[] = {
    {"wait_device", WaitDevice},
    {"wait_stream", WaitStream},
    {"wait_event", WaitEvent},
    {"poll", Poll},
    {"launch", Launch},
    {"host_function", HostFunction},
    {"unregister", Unregister},
    {"free_host", FreeHost},
    {"copy_down", CopyDown},
    {"copy_pinned", CopyPinned},
    {"copy_up", CopyUp},
    {"allocate", Allocate},
    {"load", Load},
    {"graph", Graph},
};

static cudaError_t Prepare() {
  TRY(cudaMalloc(&device, kBytes));
  TRY(cudaMemset(device, 0, kBytes));
  TRY(cudaMalloc(&many_device, kManyBytes));
  TRY(cudaMallocManaged(&managed, kBytes));
  TRY(cudaMallocHost(&pinned, kBytes));
  TRY(cudaMallocHost(&many_pinned, kManyBytes));
  TRY(cudaStreamCreate(&stream));
  TRY(cudaEventCreate(&event));
  registered = static_cast<unsigned*>(aligned_alloc(4096, kBytes));
  return cudaSuccess;
}

// A program that goes on after the session's end gets the error again from every call.
static void ExpectNoSuccess() {
  unsigned value = 0;
  void* more = nullptr;
  for (int i = 0; i < 20; ++i) {
    EXPECT(cudaDeviceSynchronize() != cudaSuccess, "after the end");
    EXPECT(cudaStreamSynchronize(stream) != cudaSuccess, "after the end");
    EXPECT(cudaStreamQuery(stream) != cudaSuccess, "after the end");
    EXPECT(cudaEventSynchronize(event) != cudaSuccess, "after the end");
    EXPECT(cudaMemcpy(&value, device, 4, cudaMemcpyDeviceToHost) != cudaSuccess, "after the end");
    EXPECT(cudaMalloc(&more, 1024) != cudaSuccess, "after the end");
    Count<<<1, 1>>>(device);
    EXPECT(cudaGetLastError() != cudaSuccess, "after the end");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT(cudaFreeHost(pinned) != cudaSuccess, "after the end");
  EXPECT(cudaStreamDestroy(stream) != cudaSuccess, "after the end");
}

int main(int count, char** arguments) {
  const std::string wanted = count > 1 ? arguments[1] : "wait_device";
  TimeToRun time(count > 2 ? arguments[2] : "1");
  cudaError_t (*round)(unsigned) = nullptr;
  for (const Kind& kind : kKinds) {
    if (kind.name == wanted) round = kind.round;
  }
  EXPECT(round != nullptr, "no such kind");
  CHECK(Prepare());
  CHECK(round(1));
  if (count > 3) busy = std::atoi(arguments[3]) * 1'000'000ull;
  std::printf("READY\n");
  std::fflush(stdout);
  time.Begin();
  cudaError_t code = cudaSuccess;
  unsigned number = 2;
  while (code == cudaSuccess && time.GoesOn()) code = round(number++);
  if (code == cudaSuccess) {
    std::printf("DONE %u\n", number);
    return Pass("until_the_end");
  }
  std::printf("ERROR %d of %s in round %u\n", code, failed, number - 1);
  std::fflush(stdout);
  ExpectNoSuccess();
  return Pass("until_the_end");
}
