// Texture and surface references: what a program sets them to is kept here; every launch of their
// module's functions takes along what they are bound to at that moment.
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
  uint64_t number = 0;       // the worker's; 0 of one that a program made itself
  Module* module = nullptr;  // likewise null
  bool surface = false;
  std::string name;

  base::Mutex mutex{base::ranks::kReference};
  bool bound LONGWIRE_GUARDED_BY(mutex) = false;
  CUDA_RESOURCE_DESC resource LONGWIRE_GUARDED_BY(mutex){};
  CUDA_TEXTURE_DESC texture LONGWIRE_GUARDED_BY(mutex){};
  // Also of linear memory that is bound already.
  CUarray_format format LONGWIRE_GUARDED_BY(mutex) = CU_AD_FORMAT_FLOAT;
  unsigned channels LONGWIRE_GUARDED_BY(mutex) = 1;
};

// CUDA_ERROR_NOT_FOUND if the module names no such texture or surface.
CUresult ReferenceOf(Module* module, const char* name, bool surface, uint64_t* handle);
CUresult NewReference(uint64_t* handle);
// CUDA_ERROR_INVALID_VALUE for a module's own.
CUresult DestroyReference(Reference* reference);
// Null if the handle is none of this kind.
Reference* FindReference(uint64_t handle, bool surface);
void ForgetReferences(Module* module);

// What one reference is bound to, as it travels.
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
