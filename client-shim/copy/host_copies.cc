#include "client-shim/copy/host_copies.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/try.h"
#include "client-shim/context/context.h"
#include "client-shim/copy/copies.h"
#include "client-shim/memory/async_pool.h"
#include "client-shim/mirror/host_memory.h"
#include "client-shim/stream/capture.h"
#include "client-shim/stream/captured_graph.h"
#include "client-shim/stream/program_streams.h"
#include "longwire/shim_hand_written.h"

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

bool IsKnownHost(uint64_t address) {
  HostRange range;
  return FindHost(address, &range);
}

HostKind KindInHost(const CopySide& side, uint64_t named) {
  HostRange range;
  if (side.kind == CopySide::Kind::kArray) return HostKind::kNone;
  if (FindHost(named, &range)) {
    return PoolOf(range.address) != nullptr ? HostKind::kPooled : HostKind::kLocked;
  }
  return side.kind == CopySide::Kind::kHost ? HostKind::kPageable : HostKind::kNone;
}

namespace {

CUDA_MEMCPY3D NodeOf(const CopySide& destination, const CopySide& source, const Extent& extent) {
  CUDA_MEMCPY3D node{};
  node.dstMemoryType = node.srcMemoryType = CU_MEMORYTYPE_HOST;
  node.dstHost = reinterpret_cast<void*>(destination.address);
  node.dstXInBytes = destination.x_bytes;
  node.dstY = destination.y;
  node.dstZ = destination.z;
  node.dstPitch = destination.pitch;
  node.dstHeight = destination.height;
  node.srcHost = reinterpret_cast<const void*>(source.address);
  node.srcXInBytes = source.x_bytes;
  node.srcY = source.y;
  node.srcZ = source.z;
  node.srcPitch = source.pitch;
  node.srcHeight = source.height;
  node.WidthInBytes = extent.width;
  node.Height = extent.rows;
  node.Depth = extent.slices;
  return node;
}

// Behind the nodes that the stream's next node would be behind, and the next one is behind it.
CUresult AddToCapture(Stream* stream, const CUDA_MEMCPY3D& copy) {
  CUgraph graph = nullptr;
  CaptureNodes after, added;
  LONGWIRE_TRY(CaptureState(stream, &graph, &after));
  const auto has_data = [](const CUgraphEdgeData& edge) {
    return edge.from_port != 0 || edge.to_port != 0 || edge.type != 0;
  };
  if (std::ranges::any_of(after.edges, has_data)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  CUgraphNode node = nullptr;
  LONGWIRE_TRY(hand::cuGraphAddMemcpyNode(&node, graph, after.nodes.data(), after.nodes.size(),
                                          &copy, stream->context->handle));
  added.nodes.push_back(node);
  return SetCaptureNodes(stream, added, CU_STREAM_SET_CAPTURE_DEPENDENCIES);
}

}  // namespace

CUresult CopyInHost(Stream* stream, const CopySide& destination, const CopySide& source,
                    const Extent& extent, Waits waits) {
  Capture* capture = stream->capture.load();
  if (capture != nullptr && waits == Waits::kAsync) {
    if (capture->invalidated.load()) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    CUresult result = AddToCapture(stream, NodeOf(destination, source, extent));
    if (result != CUDA_SUCCESS) Invalidate(capture);
    return result;
  }
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
