// Checked CUDA driver calls for the test programs that use the driver API directly.
#pragma once

#include <cuda.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "where.h"

// Ends the program with exit code 1, naming the call, when a driver call fails.
#define CHECK_DRIVER(call)                                                    \
  do {                                                                        \
    AT_THIS_LINE;                                                             \
    const CUresult check_code = (call);                                       \
    if (check_code != CUDA_SUCCESS) {                                         \
      const char* check_name = "?";                                           \
      cuGetErrorName(check_code, &check_name);                                \
      std::printf("FAIL %s:%d: %s gave %d (%s)\n", __FILE__, __LINE__, #call, \
                  static_cast<int>(check_code), check_name);                  \
      std::exit(1);                                                           \
    }                                                                         \
  } while (false)

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
  char name[256] = "";
  return cuDeviceGetName(name, sizeof name, 0) == CUDA_SUCCESS &&
         std::strstr(name, "Software device") != nullptr;
}

// What NVIDIA's own driver may fall over, as handles of what is gone, or answers in its own way:
// the software device alone is asked, by itself and through Longwire.
#define EXPECT_OF_MISTAKE(condition, ...)                     \
  do {                                                        \
    if (IsSoftwareDevice()) EXPECT((condition), __VA_ARGS__); \
  } while (false)
