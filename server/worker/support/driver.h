// The CUDA driver as the worker sees it: a table of functions, resolved from the real library, the
// software device or a test's fake. Nothing here links to libcuda. A function that the driver does
// not have answers CUDA_ERROR_NOT_SUPPORTED: none is null.
#pragma once

#include "longwire/call_ids.h"
#include "longwire/driver_table.h"

namespace longwire::worker {

// A step that cannot be taken now; the stream tries it again later. Never leaves the worker. It is
// the last number that fits the enumeration, whose own end is CUDA_ERROR_UNKNOWN, 999.
inline constexpr CUresult kNotYet = static_cast<CUresult>(1023);

// Codes that stay with a context natively: every later call in it returns the same.
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
