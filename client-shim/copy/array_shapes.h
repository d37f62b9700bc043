// The sizes of the program's arrays: a copy that exceeds one is refused before a byte of the
// program's memory is read.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace longwire::shim {

struct CopySide;
struct Extent;

void NoteArray(CUarray array, const CUDA_ARRAY3D_DESCRIPTOR& descriptor, uint32_t context_number);
void ForgetArray(CUarray array);
void ForgetArrays(uint32_t context_number);
// Refuses what the driver would refuse at once. Other kinds of arrays (levels, planes) are checked
// by the worker.
CUresult CheckArray(const CopySide& side, const Extent& extent);

}  // namespace longwire::shim
