// The layout of a private table in memory: 8-byte words. Word 0 is the size in bytes, the others
// are function pointers, none of them null: slots without a known user return an error.
#pragma once

#include <cuda.h>

#include <array>
#include <cstddef>

namespace longwire::shim {

// The function in an unknown slot. It may be called with any arguments, since the caller cleans
// them up.
inline CUresult RefusedSlot() { return CUDA_ERROR_NOT_SUPPORTED; }

template <class Function>
const void* Slot(Function* function) {
  return reinterpret_cast<const void*>(function);
}

// A table of `words` words whose slots all return an error.
template <size_t words>
std::array<const void*, words> RefusingTable() {
  std::array<const void*, words> table;
  table.fill(Slot(&RefusedSlot));
  table[0] = reinterpret_cast<const void*>(words * sizeof(void*));
  return table;
}

// The tables, each built on first use and never destroyed.
const void* const* RuntimeInterfaceTable();  // CUDART_INTERFACE
const void* const* RuntimeHooksTable();      // TOOLS_RUNTIME_CALLBACK_HOOKS
const void* const* ToolsThreadTable();       // TOOLS_TLS
const void* const* ContextStorageTable();    // CONTEXT_LOCAL_STORAGE
const void* const* ContextChecksTable();     // CONTEXT_CHECKS
const void* const* IntegrityTable();         // INTEGRITY_CHECK
const void* const* CompileCacheTable();      // JIT_CACHE
const void* const* ClusterTable();           // CLUSTER
const void* const* ToolsContextTable();      // TOOLS_CONTEXT
const void* const* ToolsModuleTable();       // TOOLS_MODULE

}  // namespace longwire::shim
