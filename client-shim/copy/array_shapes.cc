#include "client-shim/copy/array_shapes.h"

#include <algorithm>
#include <unordered_map>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "base/texel_bytes.h"
#include "client-shim/copy/copy_sides.h"
#include "client-shim/entry/handles.h"
#include "client-shim/support/never_destroyed.h"

namespace longwire::shim {
namespace {

struct Shape {
  uint64_t row_bytes = 0;
  uint64_t rows = 0;
  uint64_t slices = 0;
  uint32_t context_number = 0;
};

struct Shapes {
  base::Mutex mutex{base::ranks::kArrayShapes};
  std::unordered_map<CUarray, Shape> known LONGWIRE_GUARDED_BY(mutex);
};

Shapes& TheShapes() {
  static NeverDestroyed<Shapes> shapes;
  return *shapes;
}

bool Fits(uint64_t first, uint64_t count, uint64_t room) {
  return first <= room && count <= room - first;
}

}  // namespace

void NoteArray(CUarray array, const CUDA_ARRAY3D_DESCRIPTOR& descriptor, uint32_t context_number) {
  Shape shape;
  shape.row_bytes =
      base::ChannelBytes(descriptor.Format) * descriptor.NumChannels * descriptor.Width;
  shape.rows = std::max<uint64_t>(descriptor.Height, 1);
  shape.slices = std::max<uint64_t>(descriptor.Depth, 1);
  shape.context_number = context_number;
  Shapes& shapes = TheShapes();
  base::MutexLock lock(shapes.mutex);
  shapes.known[array] = shape;
}

void ForgetArray(CUarray array) {
  Shapes& shapes = TheShapes();
  base::MutexLock lock(shapes.mutex);
  shapes.known.erase(array);
}

void ForgetArrays(uint32_t context_number) {
  Shapes& shapes = TheShapes();
  base::MutexLock lock(shapes.mutex);
  std::erase_if(shapes.known,
                [&](const auto& entry) { return entry.second.context_number == context_number; });
}

CUresult CheckArray(const CopySide& side, const Extent& extent) {
  if (side.array == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsWorkersHandle(side.array)) return CUDA_ERROR_INVALID_HANDLE;
  Shapes& shapes = TheShapes();
  base::MutexLock lock(shapes.mutex);
  auto found = shapes.known.find(side.array);
  if (found == shapes.known.end() || found->second.row_bytes == 0) return CUDA_SUCCESS;
  const Shape& shape = found->second;
  // Copies without rows count on through the rows of an array.
  bool line = extent.rows == 1 && extent.slices == 1 && side.y == 0 && side.z == 0;
  uint64_t room = line ? shape.row_bytes * shape.rows : shape.row_bytes;
  bool fits = Fits(side.x_bytes, extent.width, room) && Fits(side.y, extent.rows, shape.rows) &&
              Fits(side.z, extent.slices, shape.slices);
  return fits ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace longwire::shim
