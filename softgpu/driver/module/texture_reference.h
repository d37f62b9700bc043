// Texture and surface references: names in a module that are bound to memory between launches.
#pragma once

#include <memory>
#include <vector>

#include "softgpu/driver/state/driver.h"
#include "softgpu/engine/engine.h"

namespace softgpu {

// A reference of a module, or one that a program made by itself. What it stands for is taken at
// each launch.
struct TextureReference {
  bool surface = false;
  Module* module = nullptr;  // null of one that a program made

  base::Mutex mutex{base::ranks::kSoftgpuTextureReference};
  bool bound LONGWIRE_GUARDED_BY(mutex) = false;
  CUDA_RESOURCE_DESC resource LONGWIRE_GUARDED_BY(mutex) = {};
  CUDA_TEXTURE_DESC texture LONGWIRE_GUARDED_BY(mutex) = {};
  // Of linear memory that is bound later.
  CUarray_format format LONGWIRE_GUARDED_BY(mutex) = CU_AD_FORMAT_FLOAT;
  unsigned channels LONGWIRE_GUARDED_BY(mutex) = 1;
  // Made at the next launch if null.
  std::shared_ptr<const TextureView> view LONGWIRE_GUARDED_BY(mutex);
};

// Sets what a module's references stand for now.
void BindReferences(const std::vector<std::shared_ptr<TextureReference>>& references,
                    LaunchConfig* config);

}  // namespace softgpu
