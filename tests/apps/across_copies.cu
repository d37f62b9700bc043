// Copies from one device to another: sizes and offsets at random, in rows and slices, waited for
// and in the order of streams of both sides. Nothing beside the copied bytes may change.
//
//   across_copies [COPIES [SEED [MOST_BYTES]]]
//   across_copies far COPIES BYTES
//
// far: large copies to and fro, of bytes that the host sends once and gets back at the end. Says
// READY after the first one. One that fails ends it: then it says what each device says.
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "check.h"

constexpr int kBlock = 256;
constexpr unsigned char kAround = 0xa5;

__global__ void Fill(unsigned char* bytes, size_t count, unsigned seed) {
  const size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
  if (i < count) bytes[i] = static_cast<unsigned char>((i * 2654435761u + seed) >> 13);
}

__global__ void Spin(unsigned* value, int rounds) {
  for (int i = 0; i < rounds; ++i) *value = *value * 3 + 1;
}

static unsigned char Filled(size_t i, unsigned seed) {
  return static_cast<unsigned char>((i * 2654435761u + seed) >> 13);
}

struct Side {
  int device;
  unsigned char* bytes;
  unsigned* spun;
  cudaStream_t stream;
  cudaEvent_t event;
};

static size_t room;
static std::mt19937_64 numbers;

static size_t Any(size_t from, size_t to) { return from + numbers() % (to - from + 1); }

static Side Prepare(int device) {
  Side side{device, nullptr, nullptr, nullptr, nullptr};
  CHECK(cudaSetDevice(device));
  CHECK(cudaMalloc(&side.bytes, room));
  CHECK(cudaMalloc(&side.spun, sizeof *side.spun));
  CHECK(cudaMemset(side.spun, 0, sizeof *side.spun));
  CHECK(cudaStreamCreateWithFlags(&side.stream, cudaStreamNonBlocking));
  CHECK(cudaEventCreateWithFlags(&side.event, cudaEventDisableTiming));
  return side;
}

static void Write(const Side& side, unsigned seed, cudaStream_t stream) {
  CHECK(cudaSetDevice(side.device));
  const unsigned blocks = static_cast<unsigned>((room + kBlock - 1) / kBlock);
  Fill<<<blocks, kBlock, 0, stream>>>(side.bytes, room, seed);
}

static void Clear(const Side& side, cudaStream_t stream) {
  CHECK(cudaSetDevice(side.device));
  CHECK(cudaMemsetAsync(side.bytes, kAround, room, stream));
}

// A box of bytes, each side with its own place and pitch.
struct Box {
  size_t width, rows, slices;
  size_t to, to_pitch, to_height, from, from_pitch, from_height;
  size_t Bytes(size_t pitch, size_t height) const {
    return ((slices - 1) * height + rows - 1) * pitch + width;
  }
};

static Box AnyBox(size_t most) {
  Box box{};
  if (numbers() % 2 == 0) {
    box = {Any(1, most), 1, 1, 0, 0, 1, 0, 0, 1};
  } else {
    box.width = Any(1, 3000);
    box.rows = Any(1, 60);
    box.slices = Any(1, 5);
    box.to_height = box.rows + Any(0, 3);
    box.from_height = box.rows + Any(0, 3);
  }
  box.to_pitch = box.width + Any(0, 100);
  box.from_pitch = box.width + Any(0, 100);
  box.to = Any(0, room - box.Bytes(box.to_pitch, box.to_height));
  box.from = Any(0, room - box.Bytes(box.from_pitch, box.from_height));
  return box;
}

static void Expect(const Side& to, const Box& box, unsigned seed, const char* what) {
  std::vector<unsigned char> wanted(room, kAround), found(room);
  for (size_t z = 0; z < box.slices; ++z) {
    for (size_t y = 0; y < box.rows; ++y) {
      const size_t there = box.to + (z * box.to_height + y) * box.to_pitch;
      const size_t here = box.from + (z * box.from_height + y) * box.from_pitch;
      for (size_t x = 0; x < box.width; ++x) wanted[there + x] = Filled(here + x, seed);
    }
  }
  CHECK(cudaMemcpy(found.data(), to.bytes, room, cudaMemcpyDefault));
  if (memcmp(found.data(), wanted.data(), room) == 0) return;
  size_t i = 0;
  while (found[i] == wanted[i]) ++i;
  EXPECT(false, "%s: byte %zu is %02x, not %02x; %zu x %zu x %zu from %zu to %zu", what, i,
         found[i], wanted[i], box.width, box.rows, box.slices, box.from, box.to);
}

static void Copy(const Side& to, const Side& from, const Box& box, cudaStream_t stream,
                 bool waits) {
  unsigned char* destination = to.bytes + box.to;
  const unsigned char* source = from.bytes + box.from;
  if (box.rows == 1 && box.slices == 1) {
    if (!waits) {
      CHECK(cudaMemcpyPeerAsync(destination, to.device, source, from.device, box.width, stream));
    } else if (numbers() % 2 == 0) {
      CHECK(cudaMemcpyPeer(destination, to.device, source, from.device, box.width));
    } else {
      CHECK(cudaMemcpy(destination, source, box.width, cudaMemcpyDefault));
    }
    return;
  }
  cudaMemcpy3DPeerParms copy = {};
  copy.dstDevice = to.device;
  copy.srcDevice = from.device;
  copy.dstPtr = make_cudaPitchedPtr(destination, box.to_pitch, box.width, box.to_height);
  copy.srcPtr = make_cudaPitchedPtr(const_cast<unsigned char*>(source), box.from_pitch, box.width,
                                    box.from_height);
  copy.extent = make_cudaExtent(box.width, box.rows, box.slices);
  if (waits) {
    CHECK(cudaMemcpy3DPeer(&copy));
  } else {
    CHECK(cudaMemcpy3DPeerAsync(&copy, stream));
  }
}

static void Waited(const Side& to, const Side& from, size_t most) {
  const unsigned seed = static_cast<unsigned>(numbers());
  const Box box = AnyBox(most);
  Write(from, seed, nullptr);
  Clear(to, nullptr);
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaSetDevice(from.device));
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaSetDevice(numbers() % 2 == 0 ? to.device : from.device));
  Copy(to, from, box, nullptr, true);
  CHECK(cudaDeviceSynchronize());
  Expect(to, box, seed, "waited for");
}

// The source is written late before the copy and overwritten at once behind it; so is, before it,
// the destination. The copy lies in a stream of either side.
static void Ordered(const Side& to, const Side& from, size_t most) {
  const unsigned seed = static_cast<unsigned>(numbers());
  const Box box = AnyBox(most);
  const bool of_source = numbers() % 2 == 0;
  const Side &own = of_source ? from : to, &other = of_source ? to : from;
  CHECK(cudaSetDevice(other.device));
  Spin<<<1, 1, 0, other.stream>>>(other.spun, 20000);
  of_source ? Clear(to, other.stream) : Write(from, seed, other.stream);
  CHECK(cudaEventRecord(other.event, other.stream));
  CHECK(cudaSetDevice(own.device));
  Spin<<<1, 1, 0, own.stream>>>(own.spun, 20000);
  of_source ? Write(from, seed, own.stream) : Clear(to, own.stream);
  CHECK(cudaStreamWaitEvent(own.stream, other.event, 0));
  Copy(to, from, box, own.stream, false);
  if (of_source) {
    Write(from, seed + 1, own.stream);
    CHECK(cudaStreamSynchronize(own.stream));
  } else {
    CHECK(cudaEventRecord(own.event, own.stream));
    CHECK(cudaSetDevice(other.device));
    CHECK(cudaStreamWaitEvent(other.stream, own.event, 0));
    Write(from, seed + 1, other.stream);
    CHECK(cudaStreamSynchronize(other.stream));
  }
  Expect(to, box, seed, of_source ? "in the source's stream" : "in the destination's stream");
}

// In a stream of a device that has neither side.
static void Aside(const Side& to, const Side& from, const Side& aside, size_t most) {
  const unsigned seed = static_cast<unsigned>(numbers());
  Box box{};
  box.width = Any(1, most);
  box.rows = box.slices = box.to_height = box.from_height = 1;
  box.to_pitch = box.from_pitch = box.width;
  box.to = Any(0, room - box.width);
  box.from = Any(0, room - box.width);
  Write(from, seed, nullptr);
  CHECK(cudaDeviceSynchronize());
  Clear(to, nullptr);
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaSetDevice(aside.device));
  CHECK(cudaMemcpyPeerAsync(to.bytes + box.to, to.device, from.bytes + box.from, from.device,
                            box.width, aside.stream));
  CHECK(cudaStreamSynchronize(aside.stream));
  Expect(to, box, seed, "in a third device's stream");
}

// What fails is reported: no copy counts as made whose bytes are not there.
static int Far(int copies, size_t bytes) {
  room = bytes;
  const Side sides[2] = {Prepare(0), Prepare(1)};
  std::vector<unsigned char> sent(bytes), found(bytes);
  for (size_t i = 0; i < bytes; ++i) sent[i] = Filled(i, 5);
  CHECK(cudaMemcpy(sides[0].bytes, sent.data(), bytes, cudaMemcpyDefault));
  for (int i = 0; i < copies; ++i) {
    const Side &from = sides[i % 2], &to = sides[1 - i % 2];
    CHECK(cudaSetDevice(to.device));
    cudaError_t code = cudaMemset(to.bytes, kAround, bytes);
    if (code == cudaSuccess) code = cudaDeviceSynchronize();
    if (code == cudaSuccess) {
      code = cudaMemcpyPeer(to.bytes, to.device, from.bytes, from.device, bytes);
    }
    if (code == cudaSuccess) code = cudaDeviceSynchronize();
    if (code != cudaSuccess) {
      printf("copy %d gave %d\n", i, code);
      for (const Side& side : sides) {
        CHECK(cudaSetDevice(side.device));
        printf("device %d gives %d\n", side.device, cudaDeviceSynchronize());
      }
      return 0;
    }
    if (i == 0) puts("READY");
    fflush(stdout);
  }
  CHECK(cudaMemcpy(found.data(), sides[copies % 2].bytes, bytes, cudaMemcpyDefault));
  EXPECT(found == sent, "the bytes have changed on their way");
  puts("PASS across_copies");
  return 0;
}

int main(int argc, char** argv) {
  if (argc == 4 && strcmp(argv[1], "far") == 0) {
    return Far(atoi(argv[2]), strtoull(argv[3], nullptr, 10));
  }
  const int copies = argc > 1 ? atoi(argv[1]) : 40;
  numbers.seed(argc > 2 ? atoi(argv[2]) : 1);
  const size_t most = argc > 3 ? strtoull(argv[3], nullptr, 10) : size_t{1} << 20;
  room = most + (size_t{1} << 20) + 5;
  int count = 0;
  CHECK(cudaGetDeviceCount(&count));
  EXPECT(count >= 2, "%d devices", count);
  std::vector<Side> sides;
  for (int i = 0; i < count; ++i) sides.push_back(Prepare(i));
  for (int i = 0; i < copies; ++i) {
    const size_t from = numbers() % count, to = (from + 1 + numbers() % (count - 1)) % count;
    i % 2 == 0 ? Waited(sides[to], sides[from], most) : Ordered(sides[to], sides[from], most);
  }
  for (int i = 0; i < count * count * count; ++i) {
    const int to = i % count, from = i / count % count, aside = i / count / count;
    if (to == from || to == aside || from == aside) continue;
    Aside(sides[to], sides[from], sides[aside], most);
  }
  // One that takes many pieces, of a size that no piece divides.
  Write(sides[0], 77, nullptr);
  CHECK(cudaDeviceSynchronize());
  Clear(sides[1], nullptr);
  CHECK(cudaDeviceSynchronize());
  const Box whole{room - 3, 1, 1, 1, room, 1, 2, room, 1};
  Copy(sides[1], sides[0], whole, nullptr, true);
  CHECK(cudaSetDevice(1));
  CHECK(cudaDeviceSynchronize());
  Expect(sides[1], whole, 77, "as a whole");
  puts("PASS across_copies");
  return 0;
}
