// A program grows a buffer: it allocates a larger one, copies all of the old one to its start and
// frees the old one. Whatever happens in between, what is in the new one afterwards is what was in
// the old one when it was copied. grow_buffer NAME runs one of the ways alone.
#include <atomic>
#include <thread>

#include "check.h"
#include "stream_values.h"

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kOld = 64 * kMiB;
constexpr size_t kNew = 96 * kMiB;
constexpr size_t kStride = 64 << 10;  // bytes for each word that is checked

__global__ void Fill(unsigned* words, size_t bytes, unsigned seed) {
  const size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x;
  if (i * kStride < bytes) words[i * kStride / 4] = seed + static_cast<unsigned>(i);
}

__global__ void CountWrong(const unsigned* words, size_t bytes, unsigned seed, unsigned* wrong) {
  const size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x;
  if (i * kStride < bytes && words[i * kStride / 4] != seed + static_cast<unsigned>(i)) {
    atomicAdd(wrong, 1);
  }
}

// The pointer is read from the device's memory.
__global__ void FillThrough(unsigned* const* table, size_t bytes, unsigned seed) {
  const size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x;
  if (i * kStride < bytes) (*table)[i * kStride / 4] = seed + static_cast<unsigned>(i);
}

static unsigned Blocks(size_t bytes) { return static_cast<unsigned>(bytes / kStride / 64 + 1); }

static void FillIn(unsigned* words, size_t bytes, unsigned seed, cudaStream_t stream = nullptr) {
  Fill<<<Blocks(bytes), 64, 0, stream>>>(words, bytes, seed);
  CHECK(cudaGetLastError());
}

static void ExpectFilled(const unsigned* words, size_t bytes, unsigned seed, const char* what,
                         cudaStream_t stream = nullptr) {
  unsigned* wrong = nullptr;
  unsigned host = 0;
  CHECK(cudaMallocAsync(&wrong, sizeof(unsigned), stream));
  CHECK(cudaMemsetAsync(wrong, 0, sizeof(unsigned), stream));
  CountWrong<<<Blocks(bytes), 64, 0, stream>>>(words, bytes, seed, wrong);
  CHECK(cudaMemcpyAsync(&host, wrong, sizeof(unsigned), cudaMemcpyDeviceToHost, stream));
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaFreeAsync(wrong, stream));
  EXPECT(host == 0, "%s: %u words are wrong", what, host);
}

struct Buffers {
  unsigned* from = nullptr;
  unsigned* to = nullptr;
  size_t bytes = 0, larger = 0;

  explicit Buffers(size_t old_bytes = kOld, size_t new_bytes = kNew)
      : bytes(old_bytes), larger(new_bytes) {
    CHECK(cudaMalloc(&from, bytes));
    FillIn(from, bytes, 7);
    CHECK(cudaMalloc(&to, larger));
  }
  void Copy() { CHECK(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToDevice)); }
  void FreeOld() { CHECK(cudaFree(from)); }
  void End(const char* what) {
    ExpectFilled(to, bytes, 7, what);
    CHECK(cudaFree(to));
  }
};

static void Plain() {
  Buffers buffers;
  buffers.Copy();
  buffers.FreeOld();
  buffers.End("plain");
}

static void WithKind() {
  Buffers buffers;
  CHECK(cudaMemcpy(buffers.to, buffers.from, buffers.bytes, cudaMemcpyDefault));
  buffers.FreeOld();
  buffers.End("kind");
}

static void Queries() {
  Buffers buffers;
  cudaEvent_t event{};
  cudaStream_t stream{};
  CHECK(cudaEventCreate(&event));
  CHECK(cudaEventRecord(event));
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaMemcpyAsync(buffers.to, buffers.from, buffers.bytes, cudaMemcpyDeviceToDevice, stream));
  size_t free_bytes = 0, total = 0, free_later = 0;
  cudaPointerAttributes attributes{};
  CHECK(cudaMemGetInfo(&free_bytes, &total));
  CHECK(cudaPointerGetAttributes(&attributes, buffers.from));
  EXPECT(attributes.type == cudaMemoryTypeDevice, "type %d", static_cast<int>(attributes.type));
  cudaError_t state = cudaStreamQuery(stream);
  EXPECT(state == cudaSuccess || state == cudaErrorNotReady, "the stream's query gave %d", state);
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaEventQuery(event));
  CHECK(cudaEventSynchronize(event));
  CHECK(cudaStreamQuery(stream));
  CHECK(cudaDeviceSynchronize());
  buffers.FreeOld();
  CHECK(cudaMemGetInfo(&free_later, &total));
  // Natively other programs' memory counts, too.
  EXPECT_OF_MISTAKE(free_later >= free_bytes + buffers.bytes,
                    "%zu bytes are free, %zu before the free", free_later, free_bytes);
  buffers.End("queries");
  CHECK(cudaStreamDestroy(stream));
  CHECK(cudaEventDestroy(event));
}

// Without any wait: the old buffer is still being filled when it is freed.
static void Unfinished() {
  Buffers buffers;
  CHECK(cudaMemcpyAsync(buffers.to, buffers.from, buffers.bytes, cudaMemcpyDeviceToDevice));
  buffers.FreeOld();
  FillIn(buffers.to + buffers.bytes / 4, buffers.larger - buffers.bytes, 9);
  ExpectFilled(buffers.to + buffers.bytes / 4, buffers.larger - buffers.bytes, 9, "unfinished");
  buffers.End("unfinished");
}

// Again and again, larger each time; a table on the device says where the buffer is.
static void Growing() {
  unsigned** table = nullptr;
  unsigned* buffer = nullptr;
  size_t bytes = kOld;
  CHECK(cudaMalloc(&table, sizeof(unsigned*)));
  CHECK(cudaMalloc(&buffer, bytes));
  for (unsigned step = 0; step < 4; ++step) {
    CHECK(cudaMemcpy(table, &buffer, sizeof(buffer), cudaMemcpyHostToDevice));
    FillThrough<<<Blocks(bytes), 64>>>(table, bytes, step);
    unsigned* larger = nullptr;
    CHECK(cudaMalloc(&larger, bytes + 16 * kMiB));
    CHECK(cudaMemcpy(larger, buffer, bytes, cudaMemcpyDeviceToDevice));
    CHECK(cudaFree(buffer));
    buffer = larger;
    ExpectFilled(buffer, bytes, step, "growing");
    bytes += 16 * kMiB;
  }
  CHECK(cudaFree(buffer));
  CHECK(cudaFree(table));
}

static void OtherThread() {
  Buffers buffers;
  CHECK(cudaDeviceSynchronize());
  buffers.Copy();
  CHECK(cudaDeviceSynchronize());
  std::thread([&] { buffers.FreeOld(); }).join();
  buffers.End("thread");
}

static void FreeAsync() {
  Buffers buffers;
  cudaStream_t stream{};
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpyAsync(buffers.to, buffers.from, buffers.bytes, cudaMemcpyDeviceToDevice, stream));
  CHECK(cudaFreeAsync(buffers.from, stream));
  ExpectFilled(buffers.to, buffers.bytes, 7, "free_async", stream);
  CHECK(cudaFreeAsync(buffers.to, stream));
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaStreamDestroy(stream));
}

// Of the stream's pool, the old one and the new one.
static void Pooled() {
  unsigned *from = nullptr, *to = nullptr;
  cudaStream_t stream{};
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaMallocAsync(&from, kOld, stream));
  FillIn(from, kOld, 7, stream);
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaMallocAsync(&to, kNew, stream));
  CHECK(cudaMemcpyAsync(to, from, kOld, cudaMemcpyDeviceToDevice, stream));
  CHECK(cudaFreeAsync(from, stream));
  ExpectFilled(to, kOld, 7, "pooled", stream);
  CHECK(cudaFreeAsync(to, stream));
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaStreamDestroy(stream));
}

// Nothing is copied: a larger buffer takes the memory of two smaller ones that were freed before
// it.
static void Joined() {
  unsigned *parts[2] = {}, *whole = nullptr;
  cudaStream_t stream{};
  CHECK(cudaStreamCreate(&stream));
  for (unsigned*& part : parts) {
    CHECK(cudaMallocAsync(&part, kOld, stream));
    FillIn(part, kOld, 3, stream);
  }
  for (unsigned* part : parts) CHECK(cudaFreeAsync(part, stream));
  CHECK(cudaMallocAsync(&whole, 2 * kOld, stream));
  FillIn(whole, 2 * kOld, 11, stream);
  ExpectFilled(whole, 2 * kOld, 11, "joined", stream);
  CHECK(cudaFreeAsync(whole, stream));
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaStreamDestroy(stream));
}

// What the new buffer held behind the old one's bytes stays, to the byte.
static void BehindIt(size_t old_bytes, bool clear, const char* what) {
  Buffers buffers(old_bytes);
  if (clear) CHECK(cudaMemset(buffers.to, 0x5a, buffers.larger));
  buffers.Copy();
  buffers.FreeOld();
  unsigned char behind[4] = {0x5a, 0x5a, 0x5a, 0x5a};
  if (clear) {
    CHECK(cudaMemcpy(behind, reinterpret_cast<unsigned char*>(buffers.to) + old_bytes,
                     sizeof(behind), cudaMemcpyDeviceToHost));
  }
  for (unsigned char byte : behind) EXPECT(byte == 0x5a, "%s: a byte behind is %d", what, byte);
  buffers.End(what);
}

static void Cleared() { BehindIt(kOld, true, "cleared"); }
static void OddSize() { BehindIt(kOld + 12345, false, "odd"); }
static void OddSizeCleared() { BehindIt(kOld + 12345, true, "odd_cleared"); }

// From here on copies have to be made.
static void Launch() {
  Buffers buffers;
  buffers.Copy();
  FillIn(buffers.from, buffers.bytes, 1000);
  buffers.FreeOld();
  buffers.End("launch");
}

static void Memset() {
  Buffers buffers;
  buffers.Copy();
  CHECK(cudaMemset(buffers.from, 0xee, buffers.bytes));
  buffers.FreeOld();
  buffers.End("memset");
}

static void AnotherCopy() {
  Buffers buffers;
  int word = 5;
  buffers.Copy();
  CHECK(cudaMemcpy(buffers.from, &word, sizeof(word), cudaMemcpyHostToDevice));
  buffers.FreeOld();
  buffers.End("copy");
}

static void HostFunction() {
  Buffers buffers;
  std::atomic<int> runs{0};
  buffers.Copy();
  CHECK(cudaLaunchHostFunc(
      nullptr, [](void* count) { ++*static_cast<std::atomic<int>*>(count); }, &runs));
  buffers.FreeOld();
  buffers.End("host_function");
  EXPECT(runs == 1, "the host function ran %d times", runs.load());
}

static void Event() {
  Buffers buffers;
  cudaEvent_t event{};
  CHECK(cudaEventCreate(&event));
  buffers.Copy();
  CHECK(cudaEventRecord(event));
  CHECK(cudaEventSynchronize(event));
  buffers.FreeOld();
  buffers.End("event");
  CHECK(cudaEventDestroy(event));
}

static void Partial() {
  Buffers buffers;
  FillIn(buffers.to, buffers.bytes, 50);
  CHECK(cudaMemcpy(buffers.to, buffers.from, buffers.bytes / 2, cudaMemcpyDeviceToDevice));
  buffers.FreeOld();
  ExpectFilled(buffers.to, buffers.bytes / 2, 7, "partial");
  const size_t half = buffers.bytes / 2;
  ExpectFilled(buffers.to + half / 4, half, 50 + static_cast<unsigned>(half / kStride), "partial");
  CHECK(cudaFree(buffers.to));
}

static void Offset() {
  Buffers buffers;
  unsigned* middle = buffers.to + 4 * kMiB / 4;
  CHECK(cudaMemcpy(middle, buffers.from, buffers.bytes, cudaMemcpyDeviceToDevice));
  buffers.FreeOld();
  ExpectFilled(middle, buffers.bytes, 7, "offset");
  CHECK(cudaFree(buffers.to));
}

static void Exported() {
  Buffers buffers;
  cudaIpcMemHandle_t handle;
  CHECK(cudaIpcGetMemHandle(&handle, buffers.from));
  buffers.Copy();
  buffers.FreeOld();
  buffers.End("exported");
}

static void Small() {
  Buffers buffers(8 * kMiB, 16 * kMiB);
  buffers.Copy();
  buffers.FreeOld();
  buffers.End("small");
}

static void SameSize() {
  Buffers buffers(kOld, kOld);
  buffers.Copy();
  buffers.FreeOld();
  buffers.End("same_size");
}

// Another stream's kernel, queued before the copy and not ordered with it, writes to the old buffer
// when the program, after it saw the copy complete, releases it.
static void BesideWork() {
  StreamValues values;
  Buffers buffers;
  cudaStream_t copying{}, working{}, opening{};
  int* flag = nullptr;
  CHECK(cudaStreamCreateWithFlags(&copying, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&working, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&opening, cudaStreamNonBlocking));
  CHECK(cudaMalloc(&flag, sizeof(int)));
  CHECK(cudaMemset(flag, 0, sizeof(int)));
  CHECK(cudaDeviceSynchronize());
  auto place = reinterpret_cast<CUdeviceptr>(flag);
  EXPECT(values.wait(working, place, 1, CU_STREAM_WAIT_VALUE_EQ) == CUDA_SUCCESS, "wait");
  FillIn(buffers.from, buffers.bytes, 2000, working);
  CHECK(
      cudaMemcpyAsync(buffers.to, buffers.from, buffers.bytes, cudaMemcpyDeviceToDevice, copying));
  CHECK(cudaStreamSynchronize(copying));
  EXPECT(values.write(opening, place, 1, CU_STREAM_WRITE_VALUE_DEFAULT) == CUDA_SUCCESS, "write");
  CHECK(cudaStreamSynchronize(working));
  buffers.FreeOld();
  buffers.End("beside");
  CHECK(cudaFree(flag));
  CHECK(cudaStreamDestroy(copying));
  CHECK(cudaStreamDestroy(working));
  CHECK(cudaStreamDestroy(opening));
}

// The program waits for the copy; then another stream, which is not ordered with it, reads.
static void UsedElsewhere() {
  Buffers buffers;
  cudaStream_t copying{}, reading{};
  CHECK(cudaStreamCreateWithFlags(&copying, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&reading, cudaStreamNonBlocking));
  CHECK(cudaDeviceSynchronize());
  CHECK(
      cudaMemcpyAsync(buffers.to, buffers.from, buffers.bytes, cudaMemcpyDeviceToDevice, copying));
  CHECK(cudaStreamSynchronize(copying));
  ExpectFilled(buffers.to, buffers.bytes, 7, "elsewhere", reading);
  buffers.FreeOld();
  buffers.End("elsewhere");
  CHECK(cudaStreamDestroy(copying));
  CHECK(cudaStreamDestroy(reading));
}

static void Captured() {
  Buffers buffers;
  cudaStream_t stream{};
  cudaGraph_t graph{};
  cudaGraphExec_t exec{};
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  CHECK(cudaMemcpyAsync(buffers.to, buffers.from, buffers.bytes, cudaMemcpyDeviceToDevice, stream));
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaStreamSynchronize(stream));
  buffers.FreeOld();
  buffers.End("captured");
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaStreamDestroy(stream));
}

// A graph is launched between the copy and the free.
static void Graph() {
  Buffers buffers;
  cudaStream_t stream{};
  cudaGraph_t graph{};
  cudaGraphExec_t exec{};
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  FillIn(buffers.from, buffers.bytes, 300, stream);
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CHECK(cudaMemcpyAsync(buffers.to, buffers.from, buffers.bytes, cudaMemcpyDeviceToDevice, stream));
  CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaStreamSynchronize(stream));
  buffers.FreeOld();
  buffers.End("graph");
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaStreamDestroy(stream));
}

// The new buffer goes, the old one stays.
static void NewFreed() {
  Buffers buffers;
  buffers.Copy();
  CHECK(cudaFree(buffers.to));
  ExpectFilled(buffers.from, buffers.bytes, 7, "new_freed");
  CHECK(cudaFree(buffers.from));
}

struct Way {
  const char* name;
  void (*run)();
};
constexpr Way kWays[] = {
    {"plain", Plain},          {"kind", WithKind},
    {"queries", Queries},      {"unfinished", Unfinished},
    {"growing", Growing},      {"thread", OtherThread},
    {"free_async", FreeAsync}, {"cleared", Cleared},
    {"odd", OddSize},          {"odd_cleared", OddSizeCleared},
    {"launch", Launch},        {"memset", Memset},
    {"copy", AnotherCopy},     {"host_function", HostFunction},
    {"event", Event},          {"partial", Partial},
    {"offset", Offset},        {"exported", Exported},
    {"small", Small},          {"same_size", SameSize},
    {"beside", BesideWork},    {"elsewhere", UsedElsewhere},
    {"captured", Captured},    {"graph", Graph},
    {"new_freed", NewFreed},   {"pooled", Pooled},
    {"joined", Joined},
};

int main(int count, char** arguments) {
  for (const Way& way : kWays) {
    if (count == 1 || std::strcmp(arguments[1], way.name) == 0) way.run();
  }
  return Pass("grow_buffer");
}
