// A program lets a buffer grow by its own management of addresses: it reserves those behind the
// buffer, and maps more memory there; if they are not free, it reserves others for all of it and
// maps everything there. No byte is copied. All of the buffer can be used as one, across the seams.
// "grow_reservation in_place" expects that the addresses behind it are free unless the program has
// them itself; natively that may be otherwise.
#include <cuda.h>

#include <algorithm>
#include <vector>

#include "check.h"

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kFirst = 8 * kMiB;
constexpr size_t kAround = 4096;  // bytes on both sides of a seam

static void Driver(CUresult found, const char* call) {
  EXPECT(found == CUDA_SUCCESS, "%s gave %d", call, found);
}
#define CU(call) Driver(call, #call)

struct Part {
  CUmemGenericAllocationHandle handle;
  size_t bytes;
};

struct Range {
  CUdeviceptr address;
  size_t bytes;
};

class GrowingBuffer {
 public:
  unsigned char* data() const { return reinterpret_cast<unsigned char*>(start_); }
  size_t bytes() const { return bytes_; }
  const std::vector<size_t>& seams() const { return seams_; }
  int moved() const { return moved_; }

  void Grow(size_t more) {
    Part part{0, more};
    CU(cuMemCreate(&part.handle, more, &properties_, 0));
    CUdeviceptr behind = 0, wanted = start_ + bytes_;
    CU(cuMemAddressReserve(&behind, more, 0, bytes_ == 0 ? 0 : wanted, 0));
    if (bytes_ == 0) start_ = wanted = behind;
    if (behind == wanted) {
      ranges_.push_back({behind, more});
      Map(behind, part);
    } else {
      CU(cuMemAddressFree(behind, more));
      Move(bytes_ + more);
      Map(start_ + bytes_, part);
    }
    if (bytes_ != 0) seams_.push_back(bytes_);
    parts_.push_back(part);
    bytes_ += more;
  }

  void End() {
    Unmap();
    for (const Part& part : parts_) CU(cuMemRelease(part.handle));
  }

 private:
  void Map(CUdeviceptr address, const Part& part) {
    CU(cuMemMap(address, part.bytes, 0, part.handle, 0));
    CUmemAccessDesc access = {properties_.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CU(cuMemSetAccess(address, part.bytes, &access, 1));
  }

  void Unmap() {
    CHECK(cudaDeviceSynchronize());
    CUdeviceptr at = start_;
    for (const Part& part : parts_) {
      CU(cuMemUnmap(at, part.bytes));
      at += part.bytes;
    }
    for (const Range& range : ranges_) CU(cuMemAddressFree(range.address, range.bytes));
    ranges_.clear();
  }

  void Move(size_t room) {
    ++moved_;
    CUdeviceptr place = 0;
    CU(cuMemAddressReserve(&place, room, 0, 0, 0));
    Unmap();
    ranges_ = {{place, room}};
    start_ = place;
    for (const Part& part : parts_) {
      Map(place, part);
      place += part.bytes;
    }
  }

  CUmemAllocationProp properties_ = [] {
    CUmemAllocationProp of_the_device = {};
    of_the_device.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    of_the_device.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    return of_the_device;
  }();
  CUdeviceptr start_ = 0;
  size_t bytes_ = 0;
  std::vector<Part> parts_;
  std::vector<Range> ranges_;
  std::vector<size_t> seams_;  // where one part ends and the next one starts
  int moved_ = 0;
};

__global__ void Fill(unsigned* words, size_t count, unsigned seed) {
  size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x;
  for (; i < count; i += size_t{gridDim.x} * blockDim.x) words[i] = seed + i * 2654435761u;
}

__global__ void CountWrong(const unsigned* words, size_t count, unsigned seed, unsigned* wrong) {
  size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x;
  for (; i < count; i += size_t{gridDim.x} * blockDim.x) {
    if (words[i] != seed + static_cast<unsigned>(i * 2654435761u)) atomicAdd(wrong, 1);
  }
}

static void FillIn(unsigned char* bytes, size_t count, unsigned seed) {
  Fill<<<64, 128>>>(reinterpret_cast<unsigned*>(bytes), count / sizeof(unsigned), seed);
  CHECK(cudaGetLastError());
}

static void ExpectFilled(const unsigned char* bytes, size_t count, unsigned seed) {
  unsigned *wrong = nullptr, host = 0;
  CHECK(cudaMalloc(&wrong, sizeof(unsigned)));
  CHECK(cudaMemset(wrong, 0, sizeof(unsigned)));
  CountWrong<<<64, 128>>>(reinterpret_cast<const unsigned*>(bytes), count / sizeof(unsigned), seed,
                          wrong);
  CHECK(cudaMemcpy(&host, wrong, sizeof(host), cudaMemcpyDeviceToHost));
  CHECK(cudaFree(wrong));
  EXPECT(host == 0, "%u of %zu words are wrong", host, count / sizeof(unsigned));
}

static void ExpectBytes(const unsigned char* from, size_t count, unsigned char wanted,
                        const char* what) {
  std::vector<unsigned char> host(count);
  CHECK(cudaMemcpy(host.data(), from, count, cudaMemcpyDeviceToHost));
  size_t right = std::count(host.begin(), host.end(), wanted);
  EXPECT(right == count, "%s: %zu of %zu bytes are right", what, right, count);
}

// Memsets and copies of all kinds that begin before the seam and end behind it.
static void UseAcross(unsigned char* seam) {
  unsigned char *start = seam - kAround, *aside = nullptr;
  CHECK(cudaMalloc(&aside, 2 * kAround));
  CHECK(cudaMemset(start, 1, 2 * kAround));
  ExpectBytes(start, 2 * kAround, 1, "memset");
  CHECK(cudaMemcpy(aside, start, 2 * kAround, cudaMemcpyDeviceToDevice));
  ExpectBytes(aside, 2 * kAround, 1, "copy from it");
  std::vector<unsigned char> twos(2 * kAround, 2);
  CHECK(cudaMemcpy(start, twos.data(), twos.size(), cudaMemcpyHostToDevice));
  ExpectBytes(start, 2 * kAround, 2, "upload");
  CHECK(cudaMemset(aside, 3, 2 * kAround));
  CHECK(cudaMemcpyAsync(start, aside, 2 * kAround, cudaMemcpyDefault, cudaStreamPerThread));
  CHECK(cudaStreamSynchronize(cudaStreamPerThread));
  ExpectBytes(start, 2 * kAround, 3, "copy to it");
  CHECK(cudaMemset2D(start, 512, 4, 256, 2 * kAround / 512));
  CHECK(cudaMemcpy2D(aside, 256, start, 512, 256, 2 * kAround / 512, cudaMemcpyDeviceToDevice));
  ExpectBytes(aside, kAround, 4, "rows");
  CHECK(cudaFree(aside));
}

// Addresses cost nothing: a program reserves far more than there is memory.
static void ReserveMuch() {
  constexpr size_t kMuch = size_t{32} << 30;
  std::vector<CUdeviceptr> pools(4);
  for (CUdeviceptr& pool : pools) CU(cuMemAddressReserve(&pool, kMuch, 0, 0, 0));
  std::sort(pools.begin(), pools.end());
  for (size_t i = 1; i < pools.size(); ++i) {
    EXPECT(pools[i] - pools[i - 1] >= kMuch, "two pools have the same addresses");
  }
  for (CUdeviceptr pool : pools) CU(cuMemAddressFree(pool, kMuch));
}

int main(int count, char**) {
  const bool in_place = count > 1;
  CHECK(cudaFree(nullptr));
  ReserveMuch();
  GrowingBuffer buffer;
  buffer.Grow(kFirst);
  FillIn(buffer.data(), buffer.bytes(), 1);
  void *small = nullptr, *large = nullptr;
  for (unsigned step = 1; step < 4; ++step) {
    // Other allocations do not stand in its way.
    CHECK(cudaMalloc(&small, kMiB));
    CHECK(cudaMalloc(&large, 64 * kMiB));
    const unsigned char* before = buffer.data();
    buffer.Grow(buffer.bytes());
    EXPECT(!in_place || buffer.data() == before, "step %u: it is not where it was", step);
    ExpectFilled(buffer.data(), buffer.bytes() / 2, step);
    for (size_t seam : buffer.seams()) UseAcross(buffer.data() + seam);
    FillIn(buffer.data(), buffer.bytes(), step + 1);
    ExpectFilled(buffer.data(), buffer.bytes(), step + 1);
    CHECK(cudaFree(small));
    CHECK(cudaFree(large));
  }
  // The program itself has the addresses behind it.
  CUdeviceptr there = 0;
  const auto behind = reinterpret_cast<CUdeviceptr>(buffer.data() + buffer.bytes());
  CU(cuMemAddressReserve(&there, kFirst, 0, behind, 0));
  EXPECT(!in_place || there == behind, "the addresses behind it are not free");
  const int moved = buffer.moved();
  buffer.Grow(kFirst);
  EXPECT(there != behind || buffer.moved() == moved + 1, "it was not moved");
  ExpectFilled(buffer.data(), buffer.bytes() - kFirst, 4);
  UseAcross(buffer.data() + buffer.seams().back());
  buffer.End();
  CU(cuMemAddressFree(there, kFirst));
  return Pass("grow_reservation");
}
