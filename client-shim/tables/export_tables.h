// The driver's private function tables, found by UUID, that the CUDA runtime and NVIDIA's libraries
// need besides the public API. Every slot that is really used has a public equivalent and is
// answered in this process.
#pragma once

#include <cuda.h>

namespace longwire::shim {

// For cuGetExportTable: CUDA_ERROR_NOT_FOUND and a null table for tables that are not provided.
CUresult FindExportTable(const void** table, const CUuuid* id);

}  // namespace longwire::shim
