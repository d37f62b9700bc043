// Copies handed over in batches: one by one into the stream, whose order is stricter than asked
// for.
#include <algorithm>

#include "base/texel_bytes.h"
#include "base/try.h"
#include "client-shim/copy/copies.h"
#include "client-shim/stream/capture.h"
#include "client-shim/stream/program_streams.h"
#include "client-shim/stream/stream.h"
#include "longwire/shim_hand_written.h"

namespace longwire::shim::hand {
namespace {

constexpr size_t kNoIndex = SIZE_MAX;  // the failure is none of a single copy

// No node of a graph holds a batch; the capture goes on without it.
CUresult CheckStream(CUstream handle) {
  if (handle == nullptr || handle == CU_STREAM_LEGACY) return CUDA_ERROR_INVALID_VALUE;
  Stream* stream = nullptr;
  LONGWIRE_TRY(ResolveStream(handle, &stream));
  bool captures = stream->capture.load() != nullptr;
  return captures ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

bool IsAccessOrder(CUmemcpySrcAccessOrder order) {
  return order == CU_MEMCPY_SRC_ACCESS_ORDER_STREAM ||
         order == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL ||
         order == CU_MEMCPY_SRC_ACCESS_ORDER_ANY;
}

// A source that is to be read in the stream's order, or at any time: the program's memory at once.
Reads ReadsOf(CUmemcpySrcAccessOrder order) {
  return order == CU_MEMCPY_SRC_ACCESS_ORDER_STREAM ? Reads::kInOrder : Reads::kNow;
}

// Sources that may go with the end of the call are read by then, also those on the device.
CUresult Leave(CUstream handle, bool read_later) {
  if (!read_later) return CUDA_SUCCESS;
  Stream* stream = nullptr;
  CUresult result = ResolveStream(handle, &stream);
  return result == CUDA_SUCCESS ? WaitForStream(stream, stream->last.load()) : result;
}

CUresult CheckAttributes(const CUmemcpyAttributes* attributes, const size_t* first, size_t count,
                         size_t copies) {
  if (count == 0 || count > copies || first[0] != 0) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    bool in_order = i == 0 || first[i] > first[i - 1];
    bool known = IsAccessOrder(attributes[i].srcAccessOrder) &&
                 (attributes[i].flags & ~CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE) == 0;
    if (!in_order || !known || first[i] >= copies) return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

bool LiesIn(size_t offset, size_t extent, size_t all) {
  return extent <= all && offset <= all - extent;
}

// An element is an array's, or a byte. Refuses a box that does not lie in its array.
CUresult ElementBytes(const CUmemcpy3DOperand& operand, const CUextent3D& box, size_t* bytes) {
  if (operand.type == CU_MEMCPY_OPERAND_TYPE_POINTER) return CUDA_SUCCESS;
  if (operand.type != CU_MEMCPY_OPERAND_TYPE_ARRAY) return CUDA_ERROR_INVALID_VALUE;
  CUDA_ARRAY3D_DESCRIPTOR array;
  LONGWIRE_TRY(forward::cuArray3DGetDescriptor_v2(&array, operand.op.array.array));
  const CUoffset3D& at = operand.op.array.offset;
  if (!LiesIn(at.x, box.width, array.Width) ||
      !LiesIn(at.y, box.height, std::max<size_t>(array.Height, 1)) ||
      !LiesIn(at.z, box.depth, std::max<size_t>(array.Depth, 1))) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const uint64_t channel = base::ChannelBytes(array.Format);
  if (channel == 0) return CUDA_ERROR_NOT_SUPPORTED;
  *bytes = channel * array.NumChannels;
  return CUDA_SUCCESS;
}

// The operand in the terms of an ordinary copy.
CopySide Side(const CUmemcpy3DOperand& operand, const CUextent3D& extent, size_t element) {
  if (operand.type == CU_MEMCPY_OPERAND_TYPE_ARRAY) {
    const auto& place = operand.op.array;
    CopySide side = CopySide::Array(place.array, place.offset.x * element);
    side.y = place.offset.y;
    side.z = place.offset.z;
    return side;
  }
  const auto& place = operand.op.ptr;
  CopySide side = CopySide::Either(place.ptr);
  side.pitch = (place.rowLength != 0 ? place.rowLength : extent.width) * element;
  side.height = place.layerHeight != 0 ? place.layerHeight : extent.height;
  return side;
}

// Whether the stream has to be waited for before the call returns.
bool IsReadLater(CUmemcpySrcAccessOrder order, uint64_t source) {
  return order == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL && !IsProgramMemory(source);
}

bool IsReadLater(const CUDA_MEMCPY3D_BATCH_OP& copy) {
  bool pointer = copy.src.type == CU_MEMCPY_OPERAND_TYPE_POINTER;
  return IsReadLater(copy.srcAccessOrder, pointer ? copy.src.op.ptr.ptr : 0);
}

CUresult CopyOne(const CUDA_MEMCPY3D_BATCH_OP& copy, CUstream stream) {
  const CUextent3D& extent = copy.extent;
  if (extent.width == 0 || extent.height == 0 || extent.depth == 0) return CUDA_ERROR_INVALID_VALUE;
  if (!IsAccessOrder(copy.srcAccessOrder)) return CUDA_ERROR_INVALID_VALUE;
  size_t from = 1, to = 1;
  LONGWIRE_TRY(ElementBytes(copy.src, extent, &from));
  LONGWIRE_TRY(ElementBytes(copy.dst, extent, &to));
  bool both = copy.src.type == copy.dst.type;
  if (both && from != to) return CUDA_ERROR_INVALID_VALUE;
  size_t element = std::max(from, to);
  return Copy(Side(copy.dst, extent, element), Side(copy.src, extent, element),
              {extent.width * element, extent.height, extent.depth}, stream, Waits::kAsync,
              Peers::kNo, ReadsOf(copy.srcAccessOrder));
}

}  // namespace

CUresult cuMemcpyBatchAsync(CUdeviceptr* dsts, CUdeviceptr* srcs, size_t* sizes, size_t count,
                            CUmemcpyAttributes* attrs, size_t* attrsIdxs, size_t numAttrs,
                            size_t* failIdx, CUstream hStream) {
  *failIdx = kNoIndex;
  LONGWIRE_TRY(CheckStream(hStream));
  LONGWIRE_TRY(CheckAttributes(attrs, attrsIdxs, numAttrs, count));
  bool read_later = false;
  for (size_t i = 0, attribute = 0; i < count; ++i) {
    if (attribute + 1 < numAttrs && attrsIdxs[attribute + 1] == i) ++attribute;
    CUmemcpySrcAccessOrder order = attrs[attribute].srcAccessOrder;
    read_later = read_later || IsReadLater(order, srcs[i]);
    CUresult result =
        sizes[i] == 0 ? CUDA_ERROR_INVALID_VALUE
                      : Copy(CopySide::Either(dsts[i]), CopySide::Either(srcs[i]), {sizes[i], 1, 1},
                             hStream, Waits::kAsync, Peers::kNo, ReadsOf(order));
    if (result == CUDA_SUCCESS) continue;
    *failIdx = i;
    return result;
  }
  return Leave(hStream, read_later);
}

CUresult cuMemcpyBatchAsync_v2(CUdeviceptr* dsts, CUdeviceptr* srcs, size_t* sizes, size_t count,
                               CUmemcpyAttributes* attrs, size_t* attrsIdxs, size_t numAttrs,
                               CUstream hStream) {
  size_t failed = 0;
  return hand::cuMemcpyBatchAsync(dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, &failed,
                                  hStream);
}

CUresult cuMemcpy3DBatchAsync(size_t numOps, CUDA_MEMCPY3D_BATCH_OP* opList, size_t* failIdx,
                              unsigned long long flags, CUstream hStream) {
  *failIdx = kNoIndex;
  if (flags != 0 || numOps == 0) return CUDA_ERROR_INVALID_VALUE;
  LONGWIRE_TRY(CheckStream(hStream));
  bool read_later = false;
  for (size_t i = 0; i < numOps; ++i) {
    read_later = read_later || IsReadLater(opList[i]);
    CUresult result = CopyOne(opList[i], hStream);
    if (result == CUDA_SUCCESS) continue;
    *failIdx = i;
    return result;
  }
  return Leave(hStream, read_later);
}

CUresult cuMemcpy3DBatchAsync_v2(size_t numOps, CUDA_MEMCPY3D_BATCH_OP* opList,
                                 unsigned long long flags, CUstream hStream) {
  size_t failed = 0;
  return hand::cuMemcpy3DBatchAsync(numOps, opList, &failed, flags, hStream);
}

}  // namespace longwire::shim::hand
