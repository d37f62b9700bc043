// The CUDA driver as a table of functions, from the real library, the software device or a test's
// fake. Nothing here links to libcuda. No entry is null: a function that the driver lacks returns
// CUDA_ERROR_NOT_SUPPORTED.
#pragma once

#include "longwire/call_ids.h"
#include "longwire/driver_table.h"

namespace longwire::worker {

// A call that cannot be issued now; the stream tries it again later. Never leaves the worker. It is
// the largest number that fits the enumeration, whose last value is CUDA_ERROR_UNKNOWN, 999.
inline constexpr CUresult kNotYet = static_cast<CUresult>(1023);

// Sticky codes: natively, every later call in the context returns the same code.
constexpr bool IsSticky(CUresult code) {
  switch (static_cast<int>(code)) {
    case 214:  // ECC_UNCORRECTABLE
    case 220:  // NVLINK_UNCORRECTABLE
    case 700:  // ILLEGAL_ADDRESS
    case 702:  // LAUNCH_TIMEOUT
    case 710:  // ASSERT
    case 714:  // HARDWARE_STACK_ERROR
    case 715:  // ILLEGAL_INSTRUCTION
    case 716:  // MISALIGNED_ADDRESS
    case 717:  // INVALID_ADDRESS_SPACE
    case 718:  // INVALID_PC
    case 719:  // LAUNCH_FAILED
    case 721:  // TENSOR_MEMORY_LEAK
      return true;
    default:
      return false;
  }
}

}  // namespace longwire::worker
