#include "softgpu/driver/module/texture_reference.h"

#include "softgpu/driver/module/texture.h"

namespace softgpu {

void BindReferences(const std::vector<std::shared_ptr<TextureReference>>& references,
                    LaunchConfig* config) {
  config->references.clear();
  for (auto& reference : references) {
    base::MutexLock lock(reference->mutex);
    if (reference->bound && reference->view == nullptr) {
      CUDA_RESOURCE_DESC resource = reference->resource;
      if (resource.resType == CU_RESOURCE_TYPE_LINEAR) {
        resource.res.linear.format = reference->format;
        resource.res.linear.numChannels = reference->channels;
      }
      // What is gone fails only kernels that read it.
      MakeView(resource, reference->texture, nullptr, &reference->view);
    }
    config->references.push_back(reference->view);
  }
}

}  // namespace softgpu
