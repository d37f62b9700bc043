// Results of the forms from before CUDA 3.2, whose addresses and sizes have 32 bits. One that does
// not fit is an error, never a part of it.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace longwire::shim::hand {

inline constexpr uint64_t kNarrowEnd = uint64_t{1} << 32;  // the first that 32 bits cannot hold

// Stores both results if both fit into 32 bits, else neither; a null pointer asks for none.
template <class A, class B>
CUresult GiveNarrow(CUresult result, A first, unsigned* first_out, B second, unsigned* second_out) {
  if (result != CUDA_SUCCESS) return result;
  if ((first_out != nullptr && first >= kNarrowEnd) ||
      (second_out != nullptr && second >= kNarrowEnd)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (first_out != nullptr) *first_out = static_cast<unsigned>(first);
  if (second_out != nullptr) *second_out = static_cast<unsigned>(second);
  return CUDA_SUCCESS;
}

}  // namespace longwire::shim::hand
