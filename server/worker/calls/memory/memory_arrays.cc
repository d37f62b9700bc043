// Arrays: their memory is the driver's own, and charged to the tenant.
#include <algorithm>

#include "base/try.h"
#include "codegen/runtime/convert.h"
#include "longwire/worker_hand_written.h"
#include "server/worker/calls/call_context.h"
#include "server/worker/memory/array_bytes.h"

namespace longwire::worker {
namespace {

CUDA_ARRAY3D_DESCRIPTOR Solid(const CUDA_ARRAY3D_DESCRIPTOR& shape) { return shape; }
CUDA_ARRAY3D_DESCRIPTOR Solid(const CUDA_ARRAY_DESCRIPTOR& shape) {
  return {shape.Width, shape.Height, 0, shape.Format, shape.NumChannels, 0};
}

// Creates an array by `create`, whose memory is charged first.
template <class Handle, class Shape, class Create>
CUresult CreateArray(CallContext& context, const Shape& shape, unsigned levels, Create create,
                     uint64_t* id) {
  if (context.context() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  Charges& charges = context.session().charges();
  Charge charge;
  LONGWIRE_TRY(charges.Take(context.context()->device, ArrayBytes(Solid(shape), levels), &charge));
  Handle handle{};
  LONGWIRE_TRY(create(&handle, &shape));
  charges.Keep({Charges::Kind::kArray, reinterpret_cast<uint64_t>(handle), context.context()->id},
               std::move(charge));
  *id = context.Publish(handle);
  return CUDA_SUCCESS;
}

template <class Handle, class Destroy>
CUresult DestroyArray(CallContext& context, uint64_t id, Destroy destroy) {
  Handle handle{};
  LONGWIRE_TRY(context.Resolve(id, &handle));
  Charges& charges = context.session().charges();
  // Before: afterwards another array may have the handle.
  auto charged = charges.Remove(Charges::Kind::kArray, reinterpret_cast<uint64_t>(handle));
  CUresult result = destroy(handle);
  if (result == CUDA_SUCCESS) {
    context.Forget<Handle>(id);
    return result;
  }
  for (auto& [key, charge] : charged) charges.Keep(key, std::move(charge));
  return result;
}

}  // namespace

CUresult Do_cuArrayCreate_v2(CallContext& context, const calls::cuArrayCreate_v2& call,
                             calls::cuArrayCreate_v2::Reply* reply) {
  CUDA_ARRAY_DESCRIPTOR shape{};
  calls::Convert(call.pAllocateArray, &shape);
  return CreateArray<CUarray>(context, shape, 1, context.driver().cuArrayCreate_v2,
                              &reply->pHandle);
}

CUresult Do_cuArray3DCreate_v2(CallContext& context, const calls::cuArray3DCreate_v2& call,
                               calls::cuArray3DCreate_v2::Reply* reply) {
  CUDA_ARRAY3D_DESCRIPTOR shape{};
  calls::Convert(call.pAllocateArray, &shape);
  return CreateArray<CUarray>(context, shape, 1, context.driver().cuArray3DCreate_v2,
                              &reply->pHandle);
}

CUresult Do_cuMipmappedArrayCreate(CallContext& context, const calls::cuMipmappedArrayCreate& call,
                                   calls::cuMipmappedArrayCreate::Reply* reply) {
  CUDA_ARRAY3D_DESCRIPTOR shape{};
  calls::Convert(call.pMipmappedArrayDesc, &shape);
  auto create = [&](CUmipmappedArray* handle, const CUDA_ARRAY3D_DESCRIPTOR* of) {
    return context.driver().cuMipmappedArrayCreate(handle, of, call.numMipmapLevels);
  };
  return CreateArray<CUmipmappedArray>(context, shape, call.numMipmapLevels, create,
                                       &reply->pHandle);
}

CUresult Do_cuArrayDestroy(CallContext& context, const calls::cuArrayDestroy& call,
                           calls::cuArrayDestroy::Reply*) {
  return DestroyArray<CUarray>(context, call.hArray, context.driver().cuArrayDestroy);
}

CUresult Do_cuMipmappedArrayDestroy(CallContext& context,
                                    const calls::cuMipmappedArrayDestroy& call,
                                    calls::cuMipmappedArrayDestroy::Reply*) {
  return DestroyArray<CUmipmappedArray>(context, call.hMipmappedArray,
                                        context.driver().cuMipmappedArrayDestroy);
}

}  // namespace longwire::worker
