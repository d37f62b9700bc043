// Checked CUDA runtime calls and the one-line verdict shared by the test programs.
#pragma once

#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "where.h"

// Ends the program with exit code 1, naming the call, when a runtime call fails.
#define CHECK(call)                                                              \
  do {                                                                           \
    AT_THIS_LINE;                                                                \
    const cudaError_t check_code = (call);                                       \
    if (check_code != cudaSuccess) {                                             \
      std::printf("FAIL %s:%d: %s gave %d (%s)\n", __FILE__, __LINE__, #call,    \
                  static_cast<int>(check_code), cudaGetErrorString(check_code)); \
      std::exit(1);                                                              \
    }                                                                            \
  } while (false)

// Ends the program with exit code 1 and a printf-style message when a condition does not hold.
#define EXPECT(condition, ...)                                         \
  do {                                                                 \
    AT_THIS_LINE;                                                      \
    if (!(condition)) {                                                \
      std::printf("FAIL %s:%d: %s: ", __FILE__, __LINE__, #condition); \
      std::printf(__VA_ARGS__);                                        \
      std::printf("\n");                                               \
      std::exit(1);                                                    \
    }                                                                  \
  } while (false)

inline bool IsSoftwareDevice() {
  cudaDeviceProp properties;
  return cudaGetDeviceProperties(&properties, 0) == cudaSuccess &&
         std::strstr(properties.name, "Software device") != nullptr;
}

// What NVIDIA's own driver may fall over, as handles of what is gone, or answers in its own way:
// the software device alone is asked, by itself and through Longwire.
#define EXPECT_OF_MISTAKE(condition, ...)                     \
  do {                                                        \
    if (IsSoftwareDevice()) EXPECT((condition), __VA_ARGS__); \
  } while (false)

inline int Pass(const char* name) {
  std::printf("PASS %s\n", name);
  return 0;
}
