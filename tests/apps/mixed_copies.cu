// Copies of all sizes up to 8 MiB in any order: up and down, from pinned and pageable memory,
// waited for or not, on four streams that know nothing of each other. At each step it is known what
// the device holds. mixed_copies SEED STEPS [BYTES]: with BYTES each copy has as many.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "check.h"

namespace {

constexpr size_t kMaxBytes = size_t{8} << 20;
constexpr int kStreams = 4;

using Bytes = std::vector<unsigned char>;

// One stream's memory on the device, what it holds after all that is queued, and where its copies
// come from and go to.
struct Stream {
  cudaStream_t handle{};
  unsigned char* device = nullptr;
  unsigned char *up = nullptr, *down = nullptr;  // pinned
  Bytes pageable_up = Bytes(kMaxBytes), pageable_down = Bytes(kMaxBytes);
  Bytes holds = Bytes(kMaxBytes);
  // The last copy down that was not looked at.
  const unsigned char* came = nullptr;
  Bytes expected;

  void Make() {
    CHECK(cudaStreamCreateWithFlags(&handle, cudaStreamNonBlocking));
    CHECK(cudaMalloc(&device, kMaxBytes));
    CHECK(cudaMallocHost(&up, kMaxBytes));
    CHECK(cudaMallocHost(&down, kMaxBytes));
    CHECK(cudaMemsetAsync(device, 0, kMaxBytes, handle));
    CHECK(cudaStreamSynchronize(handle));
  }
  void Look() {
    CHECK(cudaStreamSynchronize(handle));
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT(came[i] == expected[i], "byte %zu of %zu", i, expected.size());
    }
    expected.clear();
  }
};

class Run {
 public:
  Run(unsigned seed, size_t bytes) : random_(seed), bytes_(bytes) {
    for (Stream& stream : streams_) stream.Make();
  }
  void Step() {
    Stream& stream = streams_[Below(kStreams)];
    const size_t bytes = bytes_ != 0 ? bytes_ : Size();
    const size_t at = Below(kMaxBytes - bytes + 1);
    if (Below(2) == 0) {
      Up(stream, at, bytes);
    } else {
      Down(stream, at, bytes);
    }
    if (Below(8) == 0) stream.Look();
  }
  void End() {
    for (Stream& stream : streams_) stream.Look();
  }

 private:
  size_t Below(size_t limit) {
    return std::uniform_int_distribution<size_t>(0, limit - 1)(random_);
  }
  // As many small ones as large ones.
  size_t Size() {
    const size_t highest = size_t{1} << (10 + Below(14));
    return std::min(highest / 2 + 1 + Below(highest / 2 + 1), kMaxBytes);
  }
  void Up(Stream& stream, size_t at, size_t bytes) {
    const bool pinned = Below(2) == 0;
    // The copies that read it may be under way.
    if (pinned) stream.Look();
    unsigned char* from = pinned ? stream.up : stream.pageable_up.data();
    const unsigned first = static_cast<unsigned>(random_());
    for (size_t i = 0; i < bytes; ++i) {
      from[i] = static_cast<unsigned char>((i * 2654435761u + first) >> 13);
    }
    CHECK(cudaMemcpyAsync(stream.device + at, from, bytes, cudaMemcpyHostToDevice, stream.handle));
    std::memcpy(stream.holds.data() + at, from, bytes);
    if (!pinned) std::memset(from, 0xee, bytes);  // a pageable copy that returned has read it
  }
  void Down(Stream& stream, size_t at, size_t bytes) {
    stream.Look();
    unsigned char* to = Below(2) == 0 ? stream.down : stream.pageable_down.data();
    std::memset(to, 0x55, bytes);
    CHECK(cudaMemcpyAsync(to, stream.device + at, bytes, cudaMemcpyDeviceToHost, stream.handle));
    stream.came = to;
    stream.expected.assign(stream.holds.begin() + static_cast<ptrdiff_t>(at),
                           stream.holds.begin() + static_cast<ptrdiff_t>(at + bytes));
  }

  std::mt19937 random_;
  size_t bytes_;
  Stream streams_[kStreams];
};

}  // namespace

int main(int count, char** words) {
  const unsigned seed = count > 1 ? static_cast<unsigned>(std::atoi(words[1])) : 1;
  const int steps = count > 2 ? std::atoi(words[2]) : 200;
  const size_t bytes = count > 3 ? std::strtoull(words[3], nullptr, 10) : 0;
  Run run(seed, std::min(bytes, kMaxBytes));
  for (int i = 0; i < steps; ++i) run.Step();
  run.End();
  return Pass("mixed_copies");
}
