// Two processes that map the same memory, and register it each for itself, as ranks on one host do,
// and programs whose workers load data. Arguments: what is done, and the seconds after which it
// gives up with exit code 2. Exit code 3: a word arrived before what had been written before it.
//   turns SECONDS      kernels and programs of both, one after the other, in a memory file
//   anonymous SECONDS  the same in shared memory without a file
//   words SECONDS      kernels of both that run at the same time answer each other
//   three SECONDS      a program, too: then words change that do not concern the other process
//   lines SECONDS N    a kernel sends N messages to one of the other process (lines.h)
//   states SECONDS     launches see what the other process writes in its order
//   shortened SECONDS  the other process shortens the file
//   loader SECONDS     the other process fills memory that is copied
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lines.h"

namespace {

constexpr uint32_t kCount = 1 << 14;
constexpr size_t kBytes = kCount * sizeof(uint32_t);
constexpr int kApart = 64;

double seconds;

void* Map(size_t bytes, int file) {
  const int flags = MAP_SHARED | (file < 0 ? MAP_ANONYMOUS : 0);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, file, 0);
  EXPECT(memory != MAP_FAILED, "mmap");
  return memory;
}

int File(size_t bytes) {
  const int file = memfd_create("ranks", 0);
  EXPECT(file >= 0 && ftruncate(file, static_cast<off_t>(bytes)) == 0, "memfd_create");
  return file;
}

template <class Word>
Word* Register(void* memory, size_t bytes) {
  CHECK(cudaHostRegister(memory, bytes, cudaHostRegisterPortable | cudaHostRegisterMapped));
  Word* device = nullptr;
  CHECK(cudaHostGetDevicePointer(&device, memory, 0));
  EXPECT(device != nullptr, "no device address");
  cudaPointerAttributes attributes;
  CHECK(cudaPointerGetAttributes(&attributes, memory));
  EXPECT(attributes.type == cudaMemoryTypeHost && attributes.devicePointer == device, "%d",
         attributes.type);
  return device;
}

// The other process: its own CUDA, begun behind the fork.
class Other {
 public:
  template <class Work>
  explicit Other(Work work) {
    EXPECT(pipe(to_) == 0 && pipe(from_) == 0, "pipe");
    child_ = fork();
    EXPECT(child_ >= 0, "fork");
    if (child_ == 0) {
      std::swap(to_, from_);
      work(*this);
      std::fflush(stdout);
      _exit(0);
    }
  }
  void Say() { EXPECT(write(to_[1], "x", 1) == 1, "write"); }
  void Await() {
    char one;
    EXPECT(read(from_[0], &one, 1) == 1, "the other process has ended");
  }
  void End() {
    int status = -1;
    EXPECT(waitpid(child_, &status, 0) == child_ && WIFEXITED(status), "the child: %d", status);
    if (WEXITSTATUS(status) != 0) std::_Exit(WEXITSTATUS(status));
  }

 private:
  int to_[2], from_[2];
  pid_t child_ = -1;
};

__global__ void Step(uint32_t* values, uint32_t from, uint32_t* wrong) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (values[i] != from + i) atomicAdd(wrong, 1);
  values[i] = from + i + 1;
}

uint32_t* Counter() {
  uint32_t* counter = nullptr;
  CHECK(cudaMalloc(&counter, sizeof *counter));
  CHECK(cudaMemset(counter, 0, sizeof *counter));
  return counter;
}

uint32_t Value(const uint32_t* counter) {
  uint32_t value = 0;
  CHECK(cudaMemcpy(&value, counter, sizeof value, cudaMemcpyDefault));
  return value;
}

// A kernel and the program, both of which find what the other process has left.
void Turn(uint32_t* values, uint32_t* device, uint32_t* wrong, uint32_t from) {
  Step<<<kCount / 256, 256>>>(device, from, wrong);
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
  EXPECT(Value(wrong) == 0, "the kernel at %u saw %u wrong values", from, Value(wrong));
  for (uint32_t i = 0; i < kCount; ++i) {
    EXPECT(values[i] == from + 1 + i, "%u at %u: %u", i, from + 1, values[i]);
    values[i] = from + 2 + i;
  }
}

void TakeTurns(int file) {
  constexpr uint32_t kRounds = 10;
  auto* values = static_cast<uint32_t*>(Map(kBytes, file));
  for (uint32_t i = 0; i < kCount; ++i) values[i] = i;
  Other other([&](Other& parent) {
    auto* device = Register<uint32_t>(values, kBytes);
    uint32_t* wrong = Counter();
    for (uint32_t round = 0; round < kRounds; ++round) {
      parent.Await();
      Turn(values, device, wrong, 4 * round + 2);
      parent.Say();
    }
    CHECK(cudaHostUnregister(values));
  });
  auto* device = Register<uint32_t>(values, kBytes);
  uint32_t* wrong = Counter();
  for (uint32_t round = 0; round < kRounds; ++round) {
    Turn(values, device, wrong, 4 * round);
    other.Say();
    other.Await();
  }
  other.End();
  CHECK(cudaHostUnregister(values));
  for (uint32_t i = 0; i < kCount; ++i) EXPECT(values[i] == 4 * kRounds + i, "%u", values[i]);
  EXPECT(munmap(values, kBytes) == 0, "munmap");
}

__global__ void Answer(volatile uint32_t* request, volatile uint32_t* answer, uint32_t rounds) {
  for (uint32_t round = 1; round <= rounds; ++round) {
    while (*request != round) {
    }
    *answer = round;
    __threadfence_system();
  }
}

__global__ void Ask(volatile uint32_t* request, volatile uint32_t* answer, uint32_t rounds) {
  for (uint32_t round = 1; round <= rounds; ++round) {
    *request = round;
    __threadfence_system();
    while (*answer != round) {
    }
  }
}

// Until the stream is idle.
void AwaitIdle(const char* what) {
  live::Deadline deadline(seconds);
  cudaError_t code;
  while ((code = cudaStreamQuery(nullptr)) == cudaErrorNotReady) {
    usleep(1000);
    deadline.Check(what, 0);
  }
  CHECK(code);
}

void PassWords() {
  constexpr uint32_t kRounds = 40;
  void* words = Map(4096, File(4096));
  Other other([&](Other& parent) {
    auto* device = Register<uint32_t>(words, 4096);
    Answer<<<1, 1>>>(device, device + kApart, kRounds);
    CHECK(cudaGetLastError());
    parent.Say();
    AwaitIdle("the answers");
    CHECK(cudaHostUnregister(words));
  });
  auto* device = Register<uint32_t>(words, 4096);
  other.Await();
  Ask<<<1, 1>>>(device, device + kApart, kRounds);
  CHECK(cudaGetLastError());
  AwaitIdle("the questions");
  other.End();
}

// The program, a kernel of each process, and the program again: each waits for the one before it.
void PassThree() {
  constexpr uint32_t kRounds = 20;
  auto* words = static_cast<uint32_t*>(Map(4096, File(4096)));
  auto run = [&](uint32_t* device, int place) {
    Answer<<<1, 1>>>(device + place * kApart, device + (place + 1) * kApart, kRounds);
    CHECK(cudaGetLastError());
  };
  Other other([&](Other&) {
    run(Register<uint32_t>(words, 4096), 1);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaHostUnregister(words));
  });
  run(Register<uint32_t>(words, 4096), 0);
  volatile uint32_t* box = words;
  live::Deadline deadline(seconds);
  for (uint32_t round = 1; round <= kRounds; ++round) {
    box[0] = round;
    while (box[2 * kApart] != round) deadline.Check("round", round);
  }
  CHECK(cudaDeviceSynchronize());
  other.End();
}

__global__ void SendAll(void* memory, uint64_t messages) {
  const lines::Ring ring = lines::Ring::In(memory, false);
  uint64_t taken = 0;
  for (uint64_t message = 0; message < messages; ++message) lines::Send(ring, message, &taken);
}

__global__ void ReceiveAll(void* memory, uint64_t messages, uint32_t* wrong) {
  const lines::Ring ring = lines::Ring::In(memory, false);
  for (uint64_t message = 0; message < messages; ++message) {
    atomicAdd(wrong, lines::Receive(ring, message));
  }
}

void PassLines(uint64_t messages) {
  constexpr size_t kRing = lines::Ring::kBytes;
  void* memory = Map(kRing, File(kRing));
  lines::Ring::In(memory, false).Clear();
  Other other([&](Other&) {
    uint32_t* wrong = Counter();
    ReceiveAll<<<1, 128>>>(Register<void>(memory, kRing), messages, wrong);
    CHECK(cudaGetLastError());
    AwaitIdle("the receiver");
    EXPECT(Value(wrong) == 0, "%u words came otherwise than they were sent", Value(wrong));
  });
  SendAll<<<1, 128>>>(Register<void>(memory, kRing), messages);
  CHECK(cudaGetLastError());
  AwaitIdle("the sender");
  other.End();
}

// The flag first: what was written before it is there then.
__global__ void Look(volatile uint32_t* payload, volatile uint32_t* flag, uint32_t* seen) {
  const uint32_t now = *flag;
  __threadfence_system();
  seen[0] += *payload < now;
  seen[1] += now != seen[2];
  seen[2] = now;
}

int CheckStates() {
  constexpr size_t kRoom = 2 << 20;
  constexpr int kFlag = (kRoom - 4096) / sizeof(uint32_t);
  auto* words = static_cast<uint32_t*>(Map(kRoom, File(kRoom)));
  volatile uint32_t* box = words;
  Other other([&](Other&) {
    for (uint32_t round = 1; box[kFlag + 1] == 0; ++round) {
      box[0] = round;
      __atomic_thread_fence(__ATOMIC_SEQ_CST);
      box[kFlag] = round;
      usleep(2000 + round % 7 * 100);
    }
  });
  auto* device = Register<uint32_t>(words, kRoom);
  uint32_t *seen = nullptr, all[3];
  CHECK(cudaMalloc(&seen, sizeof all));
  CHECK(cudaMemset(seen, 0, sizeof all));
  for (int launch = 0; launch < 400; ++launch) {
    Look<<<1, 1>>>(device, device + kFlag, seen);
    CHECK(cudaDeviceSynchronize());
  }
  box[kFlag + 1] = 1;
  other.End();
  CHECK(cudaMemcpy(all, seen, sizeof all, cudaMemcpyDefault));
  std::printf("states: %u changes, %u forbidden\n", all[1], all[0]);
  std::fflush(stdout);
  EXPECT(all[1] > 50, "%u changes", all[1]);
  return all[0] == 0 ? 0 : 3;
}

// Whoever looks at a page that is gone gets a signal; calls get an error, and other work goes on.
// `exposed`: kernels reach it.
void Shorten(bool exposed) {
  const int file = File(kBytes);
  auto* values = static_cast<uint32_t*>(Map(kBytes, file));
  uint32_t *wrong = Counter(), *copy = nullptr, *device = nullptr;
  if (exposed) {
    device = Register<uint32_t>(values, kBytes);
  } else {
    CHECK(cudaHostRegister(values, kBytes, cudaHostRegisterPortable));
  }
  CHECK(cudaMalloc(&copy, kBytes));
  for (uint32_t i = 0; i < kCount; ++i) values[i] = i;
  if (exposed) Turn(values, device, wrong, 0);
  CHECK(cudaMemcpy(copy, values, kBytes, cudaMemcpyHostToDevice));
  EXPECT(ftruncate(file, 4096) == 0, "ftruncate");
  for (int round = 0; round < 3; ++round) {
    cudaError_t codes[3];
    codes[0] = cudaMemcpy(copy, values, kBytes, cudaMemcpyHostToDevice);
    codes[1] = cudaMemcpy(values, copy, kBytes, cudaMemcpyDeviceToHost);
    cudaGetLastError();
    if (exposed) Step<<<kCount / 256, 256>>>(device, 2, wrong);
    const cudaError_t launched = cudaGetLastError();  // perhaps of the copies before
    codes[2] = launched != cudaSuccess ? launched : cudaDeviceSynchronize();
    cudaGetLastError();
    const bool all = codes[0] == cudaErrorNotSupported && codes[1] == cudaErrorNotSupported;
    EXPECT(exposed ? codes[2] == cudaErrorNotSupported : all, "round %d: %d, %d, %d", round,
           codes[0], codes[1], codes[2]);
  }
  const cudaError_t last = cudaHostUnregister(values);  // perhaps the last error of the work
  EXPECT(last == cudaSuccess || last == cudaErrorNotSupported, "unregistering gave %d", last);
  cudaGetLastError();
  cudaDeviceSynchronize();
  uint32_t* whole = Counter();
  CHECK(cudaMemset(whole, 7, 4));
  EXPECT(Value(whole) == 0x07070707, "%x", Value(whole));
}

__global__ void Sum(const uint32_t* values, unsigned long long* sum) {
  atomicAdd(sum, values[blockIdx.x * blockDim.x + threadIdx.x]);
}

// Batches in shared memory, one filled while the other one is copied.
void Load() {
  constexpr uint32_t kBatches = 20;
  auto* values = static_cast<uint32_t*>(Map(2 * kBytes, File(2 * kBytes)));
  Other other([&](Other& parent) {
    for (uint32_t batch = 0; batch < kBatches; ++batch) {
      uint32_t* own = values + batch % 2 * kCount;
      for (uint32_t i = 0; i < kCount; ++i) own[i] = batch * 3 + i;
      parent.Say();
      if (batch > 0) parent.Await();
    }
  });
  CHECK(cudaHostRegister(values, 2 * kBytes, cudaHostRegisterPortable));
  uint32_t* device = nullptr;
  unsigned long long *sum = nullptr, found = 0;
  CHECK(cudaMalloc(&device, kBytes));
  CHECK(cudaMalloc(&sum, sizeof found));
  for (uint32_t batch = 0; batch < kBatches; ++batch) {
    other.Await();
    CHECK(cudaMemsetAsync(sum, 0, sizeof found));
    CHECK(cudaMemcpyAsync(device, values + batch % 2 * kCount, kBytes, cudaMemcpyHostToDevice));
    Sum<<<kCount / 256, 256>>>(device, sum);
    CHECK(cudaMemcpy(&found, sum, sizeof found, cudaMemcpyDefault));
    const unsigned long long all = uint64_t{kCount} * (kCount - 1) / 2 + 3ull * batch * kCount;
    EXPECT(found == all, "batch %u: %llu, not %llu", batch, found, all);
    if (batch + 1 < kBatches) other.Say();
  }
  other.End();
  CHECK(cudaHostUnregister(values));
}

}  // namespace

int main(int count, char** arguments) {
  EXPECT(count > 2, "arguments");
  const char* what = arguments[1];
  seconds = std::atof(arguments[2]);
  int code = 0;
  if (std::strcmp(what, "turns") == 0) {
    TakeTurns(File(kBytes));
  } else if (std::strcmp(what, "anonymous") == 0) {
    TakeTurns(-1);
  } else if (std::strcmp(what, "words") == 0) {
    PassWords();
  } else if (std::strcmp(what, "three") == 0) {
    PassThree();
  } else if (std::strcmp(what, "lines") == 0) {
    PassLines(static_cast<uint64_t>(std::atoll(arguments[3])));
  } else if (std::strcmp(what, "states") == 0) {
    code = CheckStates();
  } else if (std::strcmp(what, "shortened") == 0) {
    Shorten(false);
    Shorten(true);
  } else {
    Load();
  }
  return code != 0 ? code : Pass("shared_ranks");
}
