// Whether a running kernel and the program see each other's writes to pinned memory in their order:
// message passing in both directions with payloads of 8 bytes to 1 MiB behind several flags, and
// store buffering. Arguments: about how many rounds of each; `ordered`, `messages` without store
// buffering, or `reordered` for writers that write their flags first; the seconds after which a
// side that waits is given up; and those after which the rounds are enough, where a busy host makes
// few; and how many MiB kernels reach beside that, in 256 ranges. It prints how many there were.
// Exit code 3: an outcome that the order forbids; 2: one side waits for ever.
#include <vector>

#include "live_litmus.h"

using litmus::Box;
using litmus::Seen;
using litmus::Shape;

namespace {

constexpr int kBoxes = 2;   // a thread of the program for each
constexpr int kBlocks = 4;  // of readers
constexpr uint64_t kSizes[] = {8, 64, 4096, 65536, litmus::kPayloadBytes};
constexpr uint64_t kLeastChecks = 4;  // by a thread of the program, or by all of the device

Box* boxes = nullptr;
double seconds = 60, enough = 600;
uint64_t forbidden = 0, rounds_in_all = 0;

void Report(const char* what, uint64_t bytes, uint64_t rounds, uint64_t wrong) {
  std::printf("%s, %llu bytes: %llu rounds, %llu forbidden\n", what,
              static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(rounds),
              static_cast<unsigned long long>(wrong));
  std::fflush(stdout);
  rounds_in_all += rounds;
  forbidden += wrong;
}

// Fewer rounds of larger payloads: a round costs what its bytes cost.
uint64_t RoundsOf(uint64_t rounds, uint64_t bytes) { return rounds * 8 / bytes; }

void WriteFlags(Box& box, uint64_t round) {
  for (auto& flag : box.flags) live::Store(flag, round);
}

void WriteRounds(Box& box, Shape shape, const std::atomic<bool>& stop) {
  for (uint64_t round = 1; !stop.load(std::memory_order_relaxed); ++round) {
    if (shape.flag_first) WriteFlags(box, round);
    for (uint64_t i = 0; i < shape.words; ++i) {
      __atomic_store_n(&box.payload[i], round, __ATOMIC_RELAXED);
    }
    WriteFlags(box, round);
  }
}

// Until the stream is idle. What it runs is stopped when there has been time enough.
void Await(cudaStream_t stream, const char* what) {
  live::Deadline deadline(seconds);
  const auto start = std::chrono::steady_clock::now();
  cudaError_t code = cudaErrorNotReady;
  for (uint64_t asked = 0; code == cudaErrorNotReady; ++asked) {
    code = cudaStreamQuery(stream);
    deadline.Check(what, asked);
    std::this_thread::yield();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    for (int i = 0; i < kBoxes && took.count() > enough; ++i) live::Store(&boxes[i].stop, 1);
  }
  CHECK(code);
}

void ExpectChecks(uint64_t made) {
  if (made >= kLeastChecks) return;
  std::printf("STANDS STILL at check %llu\n", static_cast<unsigned long long>(made));
  std::exit(2);
}

// From the program to the kernel.
void PassUp(uint64_t rounds, uint64_t bytes, bool reordered, cudaStream_t stream) {
  constexpr int kReaders = kBlocks * litmus::kThreads;
  const Shape shape{bytes / sizeof(uint64_t), reordered};
  const uint64_t checks = std::max(RoundsOf(rounds, bytes) / kReaders, kLeastChecks);
  std::memset(boxes, 0, kBoxes * sizeof(Box));
  auto* seen = reinterpret_cast<Seen*>(live::Words(kReaders * sizeof(Seen)));
  std::atomic<bool> stop{false};
  litmus::Read<<<kBlocks, litmus::kThreads, 0, stream>>>(boxes, kBoxes, shape, checks, seen);
  CHECK(cudaGetLastError());
  std::vector<std::thread> writers;
  for (int i = 0; i < kBoxes; ++i) {
    writers.emplace_back([&, i] { WriteRounds(boxes[i], shape, stop); });
  }
  Await(stream, "readers of the device");
  stop.store(true);
  for (std::thread& writer : writers) writer.join();
  uint64_t made = 0, wrong = 0;
  for (int i = 0; i < kReaders; ++i) {
    made += seen[i].checks;
    wrong += seen[i].forbidden;
  }
  CHECK(cudaFreeHost(seen));
  ExpectChecks(made);
  Report("to the device", bytes, made, wrong);
}

Seen ReadRounds(const Box& box, Shape shape, uint64_t checks) {
  live::Deadline deadline(seconds);
  Seen seen = {};
  uint64_t last = 0;
  const auto start = std::chrono::steady_clock::now();
  while (seen.checks < checks) {
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    if (took.count() > enough && seen.checks >= kLeastChecks) break;
    uint64_t round = live::Load(box.flags[litmus::kFlags - 1]);
    if (round == last) {
      deadline.Check("round", round);
      continue;
    }
    last = round;
    for (int i = litmus::kFlags - 2; i >= 0; --i) {
      const uint64_t earlier = live::Load(box.flags[i]);
      seen.forbidden += earlier < round;
      round = std::max(round, earlier);
    }
    for (uint64_t i = shape.words; i-- > 0;) {
      seen.forbidden += __atomic_load_n(&box.payload[i], __ATOMIC_RELAXED) < round;
    }
    ++seen.checks;
  }
  return seen;
}

// From the kernel to the program.
void PassDown(uint64_t rounds, uint64_t bytes, bool reordered, cudaStream_t stream) {
  const Shape shape{bytes / sizeof(uint64_t), reordered};
  const uint64_t checks = std::max(RoundsOf(rounds, bytes) / kBoxes, kLeastChecks);
  std::memset(boxes, 0, kBoxes * sizeof(Box));
  litmus::Write<<<kBoxes, litmus::kThreads, 0, stream>>>(boxes, shape);
  CHECK(cudaGetLastError());
  Seen seen[kBoxes] = {};
  std::vector<std::thread> readers;
  for (int i = 0; i < kBoxes; ++i) {
    readers.emplace_back([&, i] { seen[i] = ReadRounds(boxes[i], shape, checks); });
  }
  for (std::thread& reader : readers) reader.join();
  for (int i = 0; i < kBoxes; ++i) live::Store(&boxes[i].stop, 1);
  Await(stream, "writers of the device");
  uint64_t made = 0, wrong = 0;
  for (const Seen& one : seen) {
    made += one.checks;
    wrong += one.forbidden;
  }
  Report("to the program", bytes, made, wrong);
}

// Both write their own word, then read the other's: one of them must see the other's write.
void BufferStores(uint64_t rounds, cudaStream_t stream) {
  constexpr uint64_t kSlots = 4096, kOver = litmus::kOver;
  const uint64_t batches = std::max<uint64_t>(rounds / kSlots, 1);
  uint64_t* turns = live::Words(4096);
  auto* words = reinterpret_cast<uint32_t*>(live::Words(4 * kSlots * sizeof(uint32_t)));
  uint32_t *of_host = words, *of_device = words + kSlots, *read = words + 2 * kSlots;
  litmus::Buffer<<<1, litmus::kThreads, 0, stream>>>(turns, turns + 64, batches, kSlots, of_device,
                                                     of_host, read);
  CHECK(cudaGetLastError());
  live::Deadline deadline(seconds);
  std::vector<uint32_t> read_here(kSlots);
  uint64_t wrong = 0;
  const auto start = std::chrono::steady_clock::now();
  uint64_t made = 0;
  for (uint64_t batch = 1; batch <= batches; ++batch) {
    const auto number = static_cast<uint32_t>(batch);
    live::Store(turns, batch);
    for (uint64_t i = 0; i < kSlots; ++i) {
      __atomic_store_n(&of_host[i], number, __ATOMIC_RELAXED);
      __atomic_thread_fence(__ATOMIC_SEQ_CST);
      read_here[i] = __atomic_load_n(&of_device[i], __ATOMIC_RELAXED);
    }
    while (live::Load(turns + 64) < batch) deadline.Check("batch", batch);
    for (uint64_t i = 0; i < kSlots; ++i) wrong += read_here[i] < number && read[i] < number;
    made += kSlots;
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    if (took.count() > enough) break;
  }
  live::Store(turns, kOver);
  Await(stream, "store buffering");
  CHECK(cudaFreeHost(words));
  CHECK(cudaFreeHost(turns));
  Report("store buffering", 4, made, wrong);
}

}  // namespace

// Memory that kernels reach, and that nobody uses.
void Expose(uint64_t bytes) {
  constexpr uint64_t kRanges = 256;
  for (uint64_t i = 0; i < kRanges && bytes != 0; ++i) {
    void* device = nullptr;
    CHECK(cudaHostGetDevicePointer(&device, live::Words(bytes / kRanges), 0));
  }
}

int main(int count, char** arguments) {
  const uint64_t rounds = count > 1 ? std::strtoull(arguments[1], nullptr, 10) : 50000;
  const char* what = count > 2 ? arguments[2] : "ordered";
  const bool reordered = std::strcmp(what, "reordered") == 0;
  if (count > 3) seconds = std::atof(arguments[3]);
  if (count > 4) enough = std::atof(arguments[4]);
  if (count > 5) Expose(std::strtoull(arguments[5], nullptr, 10) << 20);
  boxes = reinterpret_cast<Box*>(live::Words(kBoxes * sizeof(Box)));
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (uint64_t bytes : kSizes) {
    PassUp(rounds, bytes, reordered, stream);
    PassDown(rounds, bytes, reordered, stream);
  }
  if (std::strcmp(what, "ordered") == 0) BufferStores(rounds, stream);
  CHECK(cudaFreeHost(boxes));
  std::printf("%llu rounds, %llu forbidden\n", static_cast<unsigned long long>(rounds_in_all),
              static_cast<unsigned long long>(forbidden));
  if (forbidden != 0) return 3;
  return Pass("live_litmus");
}
