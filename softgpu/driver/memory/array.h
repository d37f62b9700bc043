// Arrays of texels. Rows lie one after the other without gaps, slices (or layers) likewise, in
// memory of the array's own that only copies, textures and surfaces reach.
#pragma once

#include <memory>
#include <vector>

#include "base/texel_bytes.h"
#include "softgpu/driver/state/driver.h"

namespace softgpu {

struct Array {
  CUDA_ARRAY3D_DESCRIPTOR shape = {};  // as it was asked for: height and depth may be 0
  int device = 0;
  Context* context = nullptr;
  size_t row_bytes = 0;
  size_t rows = 1;
  size_t slices = 1;
  uint64_t address = 0;  // of the first texel; of a level: in the mipmapped array's memory
  std::shared_ptr<void> memory;
  // Of NV12: a row of brightness for each row, then one of colour for every two. Only the planes
  // can be read and written.
  std::vector<std::shared_ptr<Array>> planes;  // in the table of arrays once asked for

  size_t bytes() const { return row_bytes * rows * slices; }
};

struct MipmappedArray {
  Context* context = nullptr;
  std::vector<std::shared_ptr<Array>> levels;  // in the table of arrays once asked for
};

// INVALID_VALUE for a shape that no array can have, NOT_SUPPORTED for one that only GPUs know.
CUresult CheckShape(const CUDA_ARRAY3D_DESCRIPTOR& shape);
// The depth is no side: it counts layers, or a cube map's faces.
bool InLayers(const CUDA_ARRAY3D_DESCRIPTOR& shape);
CUDA_ARRAY3D_DESCRIPTOR LevelShape(CUDA_ARRAY3D_DESCRIPTOR shape, unsigned level);
unsigned MostLevels(const CUDA_ARRAY3D_DESCRIPTOR& shape);

using longwire::base::ChannelBytes;

std::shared_ptr<Array> FindArray(CUarray handle);
// The context is gone, and its arrays with it.
void ForgetArrays(Context& context);

}  // namespace softgpu
