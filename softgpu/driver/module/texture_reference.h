// Texture and surface references: names in a module that are bound to memory between launches.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "softgpu/driver/state/driver.h"
#include "softgpu/engine/engine.h"

namespace softgpu {

// A reference of a module, or one that a program made by itself. What it stands for is taken at
// each launch.
struct TextureReference {
  bool surface = false;
  Module* module = nullptr;  // null of one that a program made

  std::mutex mutex;  // guards what follows; a leaf
  bool bound = false;
  CUDA_RESOURCE_DESC resource = {};
  CUDA_TEXTURE_DESC texture = {};
  CUarray_format format = CU_AD_FORMAT_FLOAT;  // of linear memory bound later
  unsigned channels = 1;
  std::shared_ptr<const TextureView> view;  // null: to be made anew
};

// Sets what a module's references stand for now.
void BindReferences(const std::vector<std::shared_ptr<TextureReference>>& references,
                    LaunchConfig* config);

}  // namespace softgpu
