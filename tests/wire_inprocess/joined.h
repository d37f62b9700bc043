// One session in this process: the client's library on one end of the rings, a worker with a fake
// driver on the other. Device memory is host memory at the same addresses, so tests can look at it.
#pragma once

#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL
#endif
#include <cuda.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "client-shim/connect/process.h"
#include "server/worker/testing/fake_driver.h"

// The variants that programs get from cuda.h, by their own names.
#define EXPECT_OK(call) EXPECT_EQ(CUDA_SUCCESS, call)
#define ASSERT_OK(call) ASSERT_EQ(CUDA_SUCCESS, call)

namespace longwire::joined {

inline constexpr uint64_t kDeviceBytes = uint64_t{256} << 20;
// What the driver calls the session's devices and their primary contexts.
inline constexpr int kFirstHandle = 10;
inline constexpr uint64_t kFirstContext = 0x77;

// Functions of a test's own in the driver's table; set before the first use of Driver().
using DriverAdjustment = void (*)(DriverTable*);
DriverAdjustment& AdjustDriver();

// How many devices the session has: one, unless set before the first use of Driver().
int& DeviceCount();

// What the client sends stands still from here on; as soon as the worker has got it. Only if
// MayStandStill() was set before the first use of Driver().
bool& MayStandStill();
void StandStill();
// And goes on to the worker.
void GoOn();

// The session ends as where the worker has died: what comes down is closed.
void EndTheSession();

// Opens the session at the first use; it lives as long as the process.
worker::testing::FakeDriver& Driver();

// Bytes of the session's log up to now.
uint64_t LogBytes();

// Replies that this client has waited for so far.
uint64_t RoundTrips();

// The fake kernel adds `add` to `count` 32-bit numbers at `data`.
struct AddParameters {
  CUdeviceptr data;
  uint32_t count;
  uint32_t add;
};

// A thread's own CUDA: device 0's primary context is current, the kernel is loaded.
struct Bench {
  Bench();
  void Add(CUstream stream, CUdeviceptr data, uint32_t count, uint32_t add);
  CUcontext context = nullptr;
  CUfunction kernel = nullptr;
};

}  // namespace longwire::joined
