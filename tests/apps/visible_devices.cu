// Prints the devices that the program sees and uses each: allocates, runs a kernel, and asks what
// only the server can answer about it.
#include "check.h"

__global__ void Store(unsigned* target, unsigned value) { *target = value; }

int main() {
  int count = 0;
  const cudaError_t counted = cudaGetDeviceCount(&count);
  std::printf("devices %d code %d\n", count, counted);
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp properties;
    CHECK(cudaGetDeviceProperties(&properties, i));
    std::printf("GPU-");
    for (int byte = 0; byte < 16; ++byte) {
      const bool dash = byte == 4 || byte == 6 || byte == 8 || byte == 10;
      std::printf("%s%02x", dash ? "-" : "",
                  static_cast<unsigned>(static_cast<unsigned char>(properties.uuid.bytes[byte])));
    }
    std::printf(" %s\n", properties.name);
    CHECK(cudaSetDevice(i));
    unsigned *target, found = 0;
    CHECK(cudaMalloc(&target, sizeof *target));
    Store<<<1, 1>>>(target, 1000 + i);
    CHECK(cudaMemcpy(&found, target, sizeof found, cudaMemcpyDeviceToHost));
    EXPECT(found == 1000u + i, "device %d computed %u", i, found);
    size_t free, total;
    CHECK(cudaMemGetInfo(&free, &total));
    cudaPointerAttributes attributes;
    CHECK(cudaPointerGetAttributes(&attributes, target));
    EXPECT(attributes.device == i, "device %d", attributes.device);
    for (int j = 0; j < count; ++j) {
      int can = 0;
      CHECK(cudaDeviceCanAccessPeer(&can, i, j));
      EXPECT(i != j || can == 0, "device %d is its own peer", i);
    }
  }
  return Pass("visible_devices");
}
