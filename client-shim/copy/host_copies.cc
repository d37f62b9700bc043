#include "client-shim/copy/host_copies.h"

#include <cstring>
#include <vector>

#include "base/try.h"
#include "client-shim/context/context.h"
#include "client-shim/stream/capture.h"
#include "client-shim/stream/program_streams.h"

namespace longwire::shim {

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
