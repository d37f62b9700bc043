// How much the arrays hold that the program has made, so that copies beyond them are refused before
// a byte of the program's memory is read.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace longwire::shim {

struct CopySide;
struct Extent;

void NoteArray(CUarray array, const CUDA_ARRAY3D_DESCRIPTOR& descriptor, uint32_t context_number);
void ForgetArray(CUarray array);
void ForgetArrays(uint32_t context_number);
// What the driver would refuse at once. Of arrays of other kinds (levels, planes) the worker knows.
CUresult CheckArray(const CopySide& side, const Extent& extent);

}  // namespace longwire::shim
