// Checked calls of the CUDA libraries whose status is a number and 0 for success.
#pragma once

#include <cstdint>
#include <vector>

#include "check.h"

#define CHECK_LIBRARY(call)                                       \
  do {                                                            \
    const int check_status = static_cast<int>(call);              \
    EXPECT(check_status == 0, "%s gave %d", #call, check_status); \
  } while (false)

template <typename T>
T* ToDevice(const std::vector<T>& values) {
  T* device;
  CHECK(cudaMalloc(&device, values.size() * sizeof(T)));
  CHECK(cudaMemcpy(device, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
  return device;
}

template <typename T>
std::vector<T> ToHost(const T* device, size_t count) {
  std::vector<T> values(count);
  CHECK(cudaMemcpy(values.data(), device, count * sizeof(T), cudaMemcpyDeviceToHost));
  return values;
}

// FNV-1a of the bytes: two runs with the same bytes print the same number.
template <typename T>
void PrintHash(const char* what, const std::vector<T>& values) {
  uint64_t hash = 0xcbf29ce484222325u;
  const auto* bytes = reinterpret_cast<const unsigned char*>(values.data());
  for (size_t i = 0; i < values.size() * sizeof(T); ++i) hash = (hash ^ bytes[i]) * 0x100000001b3u;
  std::printf("%s %016llx\n", what, static_cast<unsigned long long>(hash));
}
