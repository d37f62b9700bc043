// cudaMemcpyPeer is a border between all work of both devices, in whatever stream: it copies what
// work before it has written, and work after it, of either device, does not reach its bytes.
// Current is the one device, the other, or a third if there is one.
#include <vector>

#include "check.h"

constexpr int kCount = 1 << 20;
constexpr size_t kBytes = kCount * sizeof(unsigned);
constexpr int kRounds = 12;

__global__ void Slow(unsigned* values, unsigned value, int rounds) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned sum = i;
  for (int round = 0; round < rounds; ++round) sum = sum * 3 + round;
  values[i] = sum == 12345 && rounds < 0 ? sum : value;
}

struct Side {
  unsigned* values;
  cudaStream_t stream;
};

static void Fill(const Side& side, int device, unsigned value, int rounds) {
  CHECK(cudaSetDevice(device));
  Slow<<<kCount / 256, 256, 0, side.stream>>>(side.values, value, rounds);
  CHECK(cudaGetLastError());
}

int main() {
  int devices = 0;
  CHECK(cudaGetDeviceCount(&devices));
  EXPECT(devices >= 2, "%d devices, two are needed", devices);
  Side sides[2];
  for (int device = 0; device < 2; ++device) {
    CHECK(cudaSetDevice(device));
    CHECK(cudaMalloc(&sides[device].values, kBytes));
    CHECK(cudaStreamCreateWithFlags(&sides[device].stream, cudaStreamNonBlocking));
  }
  std::vector<unsigned> found(kCount);
  for (int round = 0; round < kRounds; ++round) {
    const int from = round % 2, to = 1 - from;
    const unsigned wanted = 1000 + round;
    Fill(sides[from], from, wanted, 200);
    Fill(sides[to], to, 7, 100);
    CHECK(cudaSetDevice(round / 2 % (devices < 3 ? 2 : 3)));
    CHECK(cudaMemcpyPeer(sides[to].values, to, sides[from].values, from, kBytes));
    Fill(sides[from], from, 9, 0);
    CHECK(cudaStreamSynchronize(sides[from].stream));
    CHECK(cudaMemcpy(found.data(), sides[to].values, kBytes, cudaMemcpyDeviceToHost));
    for (int i = 0; i < kCount; ++i) {
      EXPECT(found[i] == wanted, "round %d: element %d is %u, not %u", round, i, found[i], wanted);
    }
  }
  return Pass("peer_border");
}
