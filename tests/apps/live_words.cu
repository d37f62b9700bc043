// Words that the program and a running kernel exchange in pinned memory without any call of CUDA,
// also where the two are on different hosts. Arguments: what is done, and the seconds after which
// it gives up with exit code 2. Exit code 3: a word arrived before what had been written before it.
//   flags SECONDS [ROUNDS]   a word each way, of 1 to 8 bytes; READY after the first answer
//   counters SECONDS         each side watches a word that the other one changes all the time
//   ordered SECONDS          two words, the second one always written after the first
//   copies SECONDS           a word that is written behind a copy to the program
//   conflict SECONDS         both sides write one word all the time, which is an error
#include <sys/wait.h>
#include <unistd.h>

#include "live.h"

namespace {

constexpr int kApart = 64;  // words between two that are not to share a line
constexpr uint32_t kEnd = 0xfffffff0;

live::Deadline* deadline;

__device__ uint64_t Now() {
  uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

// Registered memory of one page, as malloc might have given it.
template <class Word>
Word* Registered() {
  void* memory = nullptr;
  EXPECT(posix_memalign(&memory, 4096, 4096) == 0, "no memory");
  std::memset(memory, 0, 4096);
  CHECK(cudaHostRegister(memory, 4096, cudaHostRegisterMapped));
  return static_cast<Word*>(memory);
}

template <class Word>
__global__ void Answer(volatile Word* request, volatile Word* answer, int rounds) {
  Word last = 0;
  for (int round = 0; round < rounds; ++round) {
    Word now;
    while ((now = *request) == last) {
    }
    last = now;
    *answer = static_cast<Word>(now * 3 + 1);
    __threadfence_system();
  }
}

// Small steps, and steps that change all bytes of a word or some. Two in a row differ.
template <class Word>
Word ValueOf(int round) {
  const auto step = static_cast<uint64_t>(round + 1);
  return static_cast<Word>(round % 2 == 0 ? 2 * step : step * 0x0101010101010101ull | 1);
}

// A child has none of the exchange, and does it no harm.
void Fork() {
  const pid_t child = fork();
  if (child == 0) {
    usleep(20000);
    _exit(0);
  }
  int status = -1;
  EXPECT(waitpid(child, &status, 0) == child && status == 0, "the child: %d", status);
}

template <class Word>
void PassFlags(Word* words, int rounds) {
  volatile Word* box = words;
  Word* device = nullptr;
  CHECK(cudaHostGetDevicePointer(&device, words, 0));
  Answer<Word><<<1, 1>>>(device, device + kApart, rounds);
  CHECK(cudaGetLastError());
  for (int round = 0; round < rounds; ++round) {
    const Word value = ValueOf<Word>(round);
    box[0] = value;
    while (box[kApart] != static_cast<Word>(value * 3 + 1)) deadline->Check("round", round);
    if (round == 0) {
      std::puts("READY");
      std::fflush(stdout);
      Fork();
    }
  }
  CHECK(cudaDeviceSynchronize());
}

template <class Word>
void CheckFlags(int rounds) {
  auto* allocated = reinterpret_cast<Word*>(live::Words(4096));
  PassFlags(allocated, rounds);
  CHECK(cudaFreeHost(allocated));
  auto* registered = Registered<Word>();
  PassFlags(registered, rounds);
  CHECK(cudaHostUnregister(registered));
  std::free(registered);
}

__global__ void Count(volatile uint32_t* counter, uint64_t nanoseconds, uint32_t* last) {
  uint32_t count = 0;
  for (const uint64_t begin = Now(); Now() - begin < nanoseconds;) *counter = ++count;
  *last = count;
}

__global__ void Watch(volatile uint32_t* counter, uint32_t* seen) {
  uint32_t last = 0, changes = 0, back = 0;
  while (last != kEnd) {
    const uint32_t now = *counter;
    changes += now != last;
    back += now < last;
    last = now;
  }
  seen[0] = changes;
  seen[1] = back;
}

void CheckCounters() {
  constexpr uint32_t kLeast = 4;  // changes that are seen while the other side counts
  auto* words = reinterpret_cast<uint32_t*>(live::Words(4096));
  volatile uint32_t* counter = words;
  uint32_t *result = nullptr, seen[2] = {}, last = 0;
  CHECK(cudaMalloc(&result, sizeof seen));
  Count<<<1, 1>>>(words, 1'000'000'000, result);
  CHECK(cudaGetLastError());
  for (uint32_t changes = 0; changes < kLeast;) {
    const uint32_t now = *counter;
    EXPECT(now >= last, "%u after %u", now, last);
    changes += now != last;
    last = now;
    deadline->Check("change", changes);
  }
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(&last, result, sizeof last, cudaMemcpyDefault));
  EXPECT(*counter == last, "the end: %u, not %u", *counter, last);

  *counter = 0;
  Watch<<<1, 1>>>(words, result);
  CHECK(cudaGetLastError());
  const auto begin = std::chrono::steady_clock::now();
  for (uint32_t count = 1; std::chrono::steady_clock::now() - begin < std::chrono::seconds(1);) {
    *counter = count++;
  }
  *counter = kEnd;
  while (cudaStreamQuery(nullptr) == cudaErrorNotReady) deadline->Check("end", 0);
  CHECK(cudaMemcpy(seen, result, sizeof seen, cudaMemcpyDefault));
  EXPECT(seen[0] >= kLeast && seen[1] == 0, "%u changes, %u of them back", seen[0], seen[1]);
  CHECK(cudaFreeHost(words));
  CHECK(cudaFree(result));
}

struct Seen {
  uint32_t changes, forbidden;
};

// The second word never has a later value than the first one, which it is written after.
__global__ void Read(volatile uint32_t* first, volatile uint32_t* second, uint32_t slow,
                     volatile uint32_t* answer, Seen* seen) {
  uint32_t last = 0, last_first = 0;
  Seen all = {};
  while (last != kEnd) {
    const uint32_t now = *second;
    __threadfence_system();
    const uint32_t before = *first;
    all.forbidden += before < now;
    all.changes += (now != last) + (before != last_first);
    if (before != last_first && before <= slow) *answer = 2 * before;
    if (now != last && now <= slow) *answer = 2 * now + 1;
    last = now;
    last_first = before;
  }
  *seen = all;
}

__global__ void Write(volatile uint32_t* first, volatile uint32_t* second, uint64_t nanoseconds) {
  const uint64_t begin = Now();
  for (uint32_t round = 1; Now() - begin < nanoseconds; ++round) {
    *first = round;
    __threadfence_system();
    *second = round;
    __threadfence_system();
  }
}

__global__ void Nothing() {}

uint32_t Report(const char* what, const Seen& seen) {
  std::printf("%s: %u changes, %u forbidden\n", what, seen.changes, seen.forbidden);
  std::fflush(stdout);
  return seen.forbidden;
}

uint32_t PassUp(cudaStream_t stream, cudaStream_t other) {
  constexpr uint32_t kSlow = 20;
  auto* words = reinterpret_cast<uint32_t*>(live::Words(4096));
  volatile uint32_t *first = words, *second = words + kApart, *answer = words + 2 * kApart;
  Seen *seen = nullptr, all;
  CHECK(cudaMalloc(&seen, sizeof all));
  Read<<<1, 1, 0, stream>>>(words, words + kApart, kSlow, words + 2 * kApart, seen);
  CHECK(cudaGetLastError());
  for (uint32_t round = 1; round <= kSlow; ++round) {
    *first = round;
    while (*answer != 2 * round) deadline->Check("first word", round);
    *second = round;
    while (*answer != 2 * round + 1) deadline->Check("second word", round);
  }
  const auto begin = std::chrono::steady_clock::now();
  for (uint32_t round = kSlow + 1;
       std::chrono::steady_clock::now() - begin < std::chrono::seconds(1); ++round) {
    *first = round;
    usleep(round % 3 * 400);
    *second = round;
    if (round % 7 == 0) usleep(3000);
  }
  *first = kEnd;
  *second = kEnd;
  // All that has changed goes before this, the first word first.
  Nothing<<<1, 1, 0, other>>>();
  CHECK(cudaGetLastError());
  while (cudaStreamQuery(stream) == cudaErrorNotReady) deadline->Check("the reader's end", 0);
  CHECK(cudaMemcpy(&all, seen, sizeof all, cudaMemcpyDefault));
  CHECK(cudaFreeHost(words));
  CHECK(cudaFree(seen));
  EXPECT(all.changes >= 2 * kSlow, "%u changes", all.changes);
  return Report("to the device", all);
}

uint32_t PassDown(cudaStream_t stream) {
  auto* words = reinterpret_cast<uint32_t*>(live::Words(4096));
  volatile uint32_t *first = words, *second = words + kApart;
  Write<<<1, 1, 0, stream>>>(words, words + kApart, 1'500'000'000);
  CHECK(cudaGetLastError());
  Seen all = {};
  const auto begin = std::chrono::steady_clock::now();
  for (uint32_t last = 0;
       std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(1200);) {
    const uint32_t now = *second;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    all.forbidden += *first < now;
    all.changes += now != last;
    last = now;
  }
  CHECK(cudaStreamSynchronize(stream));
  EXPECT(*first == *second && *first != 0, "the end: %u and %u", *first, *second);
  CHECK(cudaFreeHost(words));
  return Report("to the program", all);
}

uint32_t CheckOrder() {
  cudaStream_t stream, other;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  const uint32_t up = PassUp(stream, other);
  return up + PassDown(stream);
}

// A word, behind which the kernel goes on.
__global__ void Tell(volatile uint32_t* word, uint32_t value, uint64_t nanoseconds) {
  *word = value;
  __threadfence_system();
  for (const uint64_t begin = Now(); Now() - begin < nanoseconds;) {
  }
}

// Whoever sees the word sees what the copy before it has brought, to memory that kernels do not
// reach.
uint32_t CheckCopies() {
  constexpr size_t kBytes = size_t{24} << 20;
  constexpr uint32_t kRounds = 4;
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  auto* words = reinterpret_cast<uint32_t*>(live::Words(4096));
  volatile uint32_t* word = words;
  auto* target = static_cast<unsigned char*>(std::calloc(kBytes, 1));
  CHECK(cudaHostRegister(target, kBytes, cudaHostRegisterDefault));
  unsigned char* source = nullptr;
  CHECK(cudaMalloc(&source, kBytes));
  uint32_t forbidden = 0, meanwhile = 0;
  for (uint32_t round = 1; round <= kRounds; ++round) {
    CHECK(cudaMemsetAsync(source, static_cast<int>(round), kBytes, stream));
    CHECK(cudaMemcpyAsync(target, source, kBytes, cudaMemcpyDeviceToHost, stream));
    Tell<<<1, 1, 0, stream>>>(words, round, 500'000'000);
    CHECK(cudaGetLastError());
    const auto begin = std::chrono::steady_clock::now();
    while (*word != round &&
           std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(450)) {
    }
    if (*word == round) {
      ++meanwhile;
      volatile unsigned char* last = target + kBytes - 1;
      forbidden += *last != round;
    }
    CHECK(cudaStreamSynchronize(stream));
    EXPECT(*word == round && target[0] == round && target[kBytes - 1] == round, "round %u", round);
  }
  CHECK(cudaHostUnregister(target));
  std::printf("behind copies: %u changes, %u forbidden\n", meanwhile, forbidden);
  return forbidden;
}

void CheckConflict() {
  auto* words = reinterpret_cast<uint32_t*>(live::Words(4096));
  uint32_t* last = nullptr;
  CHECK(cudaMalloc(&last, sizeof *last));
  Count<<<1, 1>>>(words, 1'000'000'000, last);
  CHECK(cudaGetLastError());
  volatile uint32_t* word = words;
  const auto begin = std::chrono::steady_clock::now();
  for (uint32_t count = 0; std::chrono::steady_clock::now() - begin < std::chrono::seconds(1);) {
    *word = 0x80000000u + count++;
  }
  const cudaError_t code = cudaDeviceSynchronize();
  EXPECT(code == cudaErrorNotSupported, "the wait said %d", static_cast<int>(code));
  CHECK(cudaDeviceSynchronize());  // once
}

}  // namespace

int main(int count, char** arguments) {
  EXPECT(count > 2, "arguments");
  const char* what = arguments[1];
  live::Deadline limit(std::atof(arguments[2]));
  deadline = &limit;
  uint32_t forbidden = 0;
  if (std::strcmp(what, "flags") == 0) {
    const int rounds = count > 3 ? std::atoi(arguments[3]) : 20;
    CheckFlags<uint32_t>(rounds);
    if (count <= 3) {
      CheckFlags<uint8_t>(rounds);
      CheckFlags<uint16_t>(rounds);
      CheckFlags<uint64_t>(rounds);
    }
  } else if (std::strcmp(what, "counters") == 0) {
    CheckCounters();
  } else if (std::strcmp(what, "ordered") == 0) {
    forbidden = CheckOrder();
  } else if (std::strcmp(what, "copies") == 0) {
    forbidden = CheckCopies();
  } else {
    CheckConflict();
  }
  if (forbidden != 0) return 3;
  return Pass("live_words");
}
