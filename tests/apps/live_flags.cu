// Pinned memory that kernels reach itself: what a running kernel and the program write there, the
// other one sees without any call of CUDA, and copies, fills and graphs keep their order with it.
// Argument: the seconds after which it gives up with exit code 2.
#include <vector>

#include "live.h"

namespace {

constexpr int kCount = 3000;
constexpr size_t kBytes = kCount * sizeof(int);

live::Deadline* deadline;

__global__ void Serve(volatile int* request, volatile int* answer, int rounds) {
  for (int round = 1; round <= rounds; ++round) {
    while (*request < round) {
    }
    *answer = *request * 10;
    __threadfence_system();
  }
}

__global__ void AddOne(int* values) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < kCount) values[i] += 1;
}

void Add(int* values, cudaStream_t stream) {
  AddOne<<<(kCount + 255) / 256, 256, 0, stream>>>(values);
  CHECK(cudaGetLastError());
}

int* Pinned() { return reinterpret_cast<int*>(live::Words(kBytes)); }

int* OnDevice() {
  int* memory = nullptr;
  CHECK(cudaMalloc(&memory, kBytes));
  return memory;
}

void ExpectAll(const int* values, int expected, const char* what) {
  for (int i = 0; i < kCount; ++i) {
    EXPECT(values[i] == expected, "%s: element %d is %d, not %d", what, i, values[i], expected);
  }
}

// The mailbox of one word each way.
void CheckFlags() {
  volatile int* box = Pinned();
  int* device = nullptr;
  CHECK(cudaHostGetDevicePointer(&device, const_cast<int*>(box), 0));
  EXPECT(device == box, "the device has another address");
  constexpr int kRounds = 200;
  Serve<<<1, 1>>>(device, device + 64, kRounds);
  CHECK(cudaGetLastError());
  for (int round = 1; round <= kRounds; ++round) {
    box[0] = round;
    while (box[64] != round * 10) deadline->Check("round", round);
  }
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaFreeHost(const_cast<int*>(box)));
}

__global__ void Count(unsigned long long* counter, int each) {
  for (int i = 0; i < each; ++i) atomicAdd_system(counter, 1ull);
}

// A counter that the program watches while it grows. Where the device adds to the host's memory as
// the host does, both may count in one word.
void CheckCounter() {
  constexpr int kBlocks = 4, kThreads = 64, kEach = 200, kOwn = 20000;
  uint64_t* counter = live::Words(4096);
  Count<<<kBlocks, kThreads>>>(reinterpret_cast<unsigned long long*>(counter), kEach);
  CHECK(cudaGetLastError());
  uint64_t expected = uint64_t{kBlocks} * kThreads * kEach, last = 0;
  if (IsSoftwareDevice()) {
    for (int i = 0; i < kOwn; ++i) __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
    expected += kOwn;
  }
  while (last != expected) {
    const uint64_t now = live::Load(counter);
    EXPECT(now >= last && now <= expected, "%llu after %llu", static_cast<unsigned long long>(now),
           static_cast<unsigned long long>(last));
    last = now;
    deadline->Check("count", now);
  }
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaFreeHost(counter));
}

__global__ void ReadAfterFlag(volatile uint64_t* flag, volatile uint64_t* answer, const int* buffer,
                              int rounds) {
  for (int round = 1; round <= rounds; ++round) {
    while (*flag < round) {
    }
    __threadfence_system();
    const volatile int* now = buffer;
    answer[1] = now[kCount - 1];
    __threadfence_system();
    *answer = round;
  }
}

// A copy that has returned has landed, also for a kernel that runs and sees a flag.
void CheckCopiesBefore() {
  uint64_t* words = live::Words(4096);
  int *buffer = OnDevice(), *source = Pinned();
  cudaStream_t running, copying;
  CHECK(cudaStreamCreateWithFlags(&running, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&copying, cudaStreamNonBlocking));
  constexpr int kRounds = 100;
  ReadAfterFlag<<<1, 1, 0, running>>>(words, words + 64, buffer, kRounds);
  CHECK(cudaGetLastError());
  for (int round = 1; round <= kRounds; ++round) {
    for (int i = 0; i < kCount; ++i) source[i] = round * 7;
    CHECK(cudaMemcpyAsync(buffer, source, kBytes, cudaMemcpyHostToDevice, copying));
    CHECK(cudaStreamSynchronize(copying));
    live::Store(words, static_cast<uint64_t>(round));
    while (live::Load(words + 64) != static_cast<uint64_t>(round)) deadline->Check("copy", round);
    EXPECT(words[65] == static_cast<uint64_t>(round) * 7, "round %d: the kernel read %llu", round,
           static_cast<unsigned long long>(words[65]));
  }
  CHECK(cudaStreamSynchronize(running));
  CHECK(cudaStreamDestroy(running));
  CHECK(cudaStreamDestroy(copying));
  CHECK(cudaFree(buffer));
  CHECK(cudaFreeHost(source));
  CHECK(cudaFreeHost(words));
}

// Copies and fills before and behind kernels of the same stream, on the same memory.
void CheckOrder(cudaStream_t stream) {
  int *pinned = Pinned(), *device = OnDevice(), *result = Pinned();
  std::vector<int> pageable(kCount, 40);
  for (int turn = 0; turn < 20; ++turn) {
    CHECK(cudaMemsetAsync(pinned, 0, kBytes, stream));
    CHECK(cudaMemcpyAsync(device, pinned, kBytes, cudaMemcpyHostToDevice, stream));
    Add(device, stream);
    CHECK(cudaMemcpyAsync(pinned, device, kBytes, cudaMemcpyDeviceToHost, stream));
    Add(pinned, stream);
    CHECK(cudaMemcpyAsync(device, pinned, kBytes, cudaMemcpyHostToDevice, stream));
    Add(device, stream);
    CHECK(cudaMemcpyAsync(result, device, kBytes, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    ExpectAll(pinned, 2, "pinned memory");
    ExpectAll(result, 3, "the copies' end");
    // From pinned memory to pinned memory, behind a kernel and before one.
    CHECK(cudaMemcpyAsync(result, pinned, kBytes, cudaMemcpyDefault, stream));
    Add(result, stream);
    CHECK(cudaMemcpyAsync(pinned, pageable.data(), kBytes, cudaMemcpyDefault, stream));
    Add(pinned, stream);
    CHECK(cudaStreamSynchronize(stream));
    ExpectAll(result, 3, "a copy to other pinned memory");
    ExpectAll(pinned, 41, "a copy from other memory");
    // What waits must be there when it returns; a copy of few bytes reads what the fill has left.
    CHECK(cudaMemset(pinned, 1, kBytes));
    ExpectAll(pinned, 0x01010101, "a fill");
    CHECK(cudaMemsetAsync(pinned, 2, kBytes, stream));
    CHECK(cudaMemcpy2DAsync(device, kBytes, pinned, kBytes, kBytes, 1, cudaMemcpyHostToDevice,
                            stream));
    CHECK(cudaMemcpyAsync(result, device, kBytes, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    ExpectAll(result, 0x02020202, "a copy behind a fill");
    // A copy that waits ends a wait for the kernel before it, too.
    std::memset(pinned, 0, kBytes);
    Add(pinned, nullptr);
    CHECK(cudaMemcpy(device, pageable.data(), kBytes, cudaMemcpyHostToDevice));
    ExpectAll(pinned, 1, "a kernel before a copy that waits");
  }
  CHECK(cudaFreeHost(pinned));
  CHECK(cudaFreeHost(result));
  CHECK(cudaFree(device));
}

// The same within a graph, beside copies of the graph to memory that is not pinned.
void CheckGraph(cudaStream_t stream) {
  int *pinned = Pinned(), *device = OnDevice();
  std::vector<int> pageable(kCount);
  CHECK(cudaMemset(device, 0, kBytes));
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  CHECK(cudaMemcpyAsync(pinned, device, kBytes, cudaMemcpyDeviceToHost, stream));
  Add(pinned, stream);
  CHECK(cudaMemcpyAsync(device, pinned, kBytes, cudaMemcpyHostToDevice, stream));
  Add(device, stream);
  CHECK(cudaMemcpyAsync(pageable.data(), device, kBytes, cudaMemcpyDeviceToHost, stream));
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiate(&executable, graph, 0));
  for (int turn = 1; turn <= 20; ++turn) {
    CHECK(cudaGraphLaunch(executable, stream));
    // While the graph's last copy may be on its way, a copy and a kernel in the stream's order.
    CHECK(cudaMemcpyAsync(pinned, device, kBytes, cudaMemcpyDeviceToHost, stream));
    Add(pinned, stream);
    CHECK(cudaStreamSynchronize(stream));
    ExpectAll(pageable.data(), 2 * turn, "what the graph copied");
    ExpectAll(pinned, 2 * turn + 1, "pinned memory behind the graph");
  }
  CHECK(cudaGraphExecDestroy(executable));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaFree(device));
  CHECK(cudaFreeHost(pinned));
}

struct Link {
  Link* next;
  uint64_t value;
};

__global__ void Follow(Link** first, uint64_t* sum) {
  for (Link* link = *first; link != nullptr; link = link->next) *sum += link->value;
}

// Kernels find pinned memory by pointers that no argument shows.
void CheckHiddenPointers() {
  constexpr int kLinks = 40;
  Link** first = nullptr;
  uint64_t* sum = live::Words(4096);
  CHECK(cudaMallocManaged(reinterpret_cast<void**>(&first), sizeof(Link*)));
  *first = nullptr;
  std::vector<Link*> links;
  for (int i = 0; i < kLinks; ++i) {
    auto* link = reinterpret_cast<Link*>(live::Words(i % 4 == 0 ? size_t{3} << 20 : 100));
    *link = {*first, static_cast<uint64_t>(i)};
    links.push_back(*first = link);
  }
  Follow<<<1, 1>>>(first, sum);
  CHECK(cudaDeviceSynchronize());
  EXPECT(*sum == kLinks * (kLinks - 1) / 2, "the sum is %llu",
         static_cast<unsigned long long>(*sum));
  for (Link* link : links) CHECK(cudaFreeHost(link));
  CHECK(cudaFree(first));
  CHECK(cudaFreeHost(sum));
}

void CheckAttributes() {
  int* pinned = Pinned();
  cudaPointerAttributes attributes;
  CHECK(cudaPointerGetAttributes(&attributes, pinned + 5));
  EXPECT(attributes.type == cudaMemoryTypeHost, "type %d", attributes.type);
  EXPECT(attributes.hostPointer == pinned + 5 && attributes.devicePointer == pinned + 5,
         "host %p, device %p, not %p", attributes.hostPointer, attributes.devicePointer,
         static_cast<void*>(pinned + 5));
  EXPECT(cudaHostRegister(pinned, kBytes, 0) != cudaSuccess, "it was registered again");
  EXPECT(cudaHostUnregister(pinned) != cudaSuccess, "it was unregistered");
  cudaGetLastError();
  CHECK(cudaFreeHost(pinned));
}

}  // namespace

int main(int count, char** arguments) {
  live::Deadline end(count > 1 ? std::atof(arguments[1]) : 60);
  deadline = &end;
  CheckFlags();
  CheckCounter();
  CheckCopiesBefore();
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CheckOrder(stream);
  CheckGraph(stream);
  CheckHiddenPointers();
  CheckAttributes();
  return Pass("live_flags");
}
