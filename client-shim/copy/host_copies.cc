#include "client-shim/copy/host_copies.h"

#include <cstring>
#include <vector>

#include "base/try.h"
#include "client-shim/context/context.h"
#include "client-shim/copy/copies.h"
#include "client-shim/stream/capture.h"
#include "client-shim/stream/program_streams.h"

namespace longwire::shim {

calls::Place WirePlace(const CopySide& side, const Extent& extent) {
  calls::Place place;
  place.address = side.kind == CopySide::Kind::kArray ? 0 : side.address;
  place.array = reinterpret_cast<uint64_t>(side.array);
  place.x_bytes = side.x_bytes;
  place.y = side.y;
  place.z = side.z;
  place.pitch = side.pitch;
  place.height = side.height;
  place.width_bytes = extent.width;
  place.rows = extent.rows;
  place.slices = extent.slices;
  return place;
}

HostPlace HostSide(const CopySide& side, const Extent& extent) {
  HostPlace place;
  place.base = reinterpret_cast<std::byte*>(side.address) + side.z * side.pitch * side.height +
               side.y * side.pitch + side.x_bytes;
  place.pitch = side.pitch;
  place.slice_pitch = side.pitch * side.height;
  place.width = extent.width;
  place.rows = extent.rows;
  place.slices = extent.slices;
  return place;
}

CUresult CopyInHost(Stream* stream, const CopySide& destination, const CopySide& source,
                    const Extent& extent) {
  LONGWIRE_TRY(RefuseWhileCapturing(stream));
  std::vector<StreamPoint> before = UnfinishedBefore(stream);
  LONGWIRE_TRY(WaitForWork(before));
  HostPlace to = HostSide(destination, extent), from = HostSide(source, extent);
  for (uint64_t slice = 0; slice < extent.slices; ++slice) {
    for (uint64_t row = 0; row < extent.rows; ++row) {
      std::memmove(to.base + slice * to.slice_pitch + row * to.pitch,
                   from.base + slice * from.slice_pitch + row * from.pitch, extent.width);
    }
  }
  return CUDA_SUCCESS;
}

}  // namespace longwire::shim
