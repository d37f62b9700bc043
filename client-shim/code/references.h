// Texture and surface references. The program's settings are stored here. Every launch of a
// function of their module carries their current bindings.
#pragma once

#include <cuda.h>

#include <string>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "client-shim/code/module.h"
#include "client-shim/support/handle_table.h"

namespace longwire::shim {

struct Reference {
  uint64_t table_index = 0;
  uint64_t handle = 0;
  uint64_t number = 0;       // the worker's; 0 if the program created the reference itself
  Module* module = nullptr;  // null if the program created it itself
  bool surface = false;
  std::string name;

  base::Mutex mutex{base::ranks::kReference};
  bool bound LONGWIRE_GUARDED_BY(mutex) = false;
  CUDA_RESOURCE_DESC resource LONGWIRE_GUARDED_BY(mutex){};
  CUDA_TEXTURE_DESC texture LONGWIRE_GUARDED_BY(mutex){};
  // Also applies to linear memory that is bound already.
  CUarray_format format LONGWIRE_GUARDED_BY(mutex) = CU_AD_FORMAT_FLOAT;
  unsigned channels LONGWIRE_GUARDED_BY(mutex) = 1;
};

// CUDA_ERROR_NOT_FOUND if the module has no such texture or surface.
CUresult ReferenceOf(Module* module, const char* name, bool surface, uint64_t* handle);
CUresult NewReference(uint64_t* handle);
// CUDA_ERROR_INVALID_VALUE for a reference of a module.
CUresult DestroyReference(Reference* reference);
// Null if the handle is not of this kind.
Reference* FindReference(uint64_t handle, bool surface);
void ForgetReferences(Module* module);

// The binding of one reference, as it is sent.
struct ReferenceBinding {
  uint64_t number = 0;
  uint64_t array = 0;
  bool surface = false;
  CUDA_RESOURCE_DESC resource{};
  CUDA_TEXTURE_DESC texture{};

  calls::BoundReference record() const;  // points into this
};
std::vector<ReferenceBinding> BindingsOf(Module* module);

}  // namespace longwire::shim
