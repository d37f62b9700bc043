// Arrays: made and destroyed by the worker; how much they hold is kept here for the copies.
#include "base/try.h"
#include "client-shim/context/context.h"
#include "client-shim/copy/array_shapes.h"
#include "longwire/shim_hand_written.h"

namespace longwire::shim::hand {
namespace {

void Note(CUarray array, const CUDA_ARRAY3D_DESCRIPTOR& descriptor) {
  Context* owner = nullptr;
  if (RequireOwner(&owner) == CUDA_SUCCESS) NoteArray(array, descriptor, owner->number.load());
}

}  // namespace

CUresult cuArrayCreate_v2(CUarray* pHandle, const CUDA_ARRAY_DESCRIPTOR* pAllocateArray) {
  LONGWIRE_TRY(forward::cuArrayCreate_v2(pHandle, pAllocateArray));
  const CUDA_ARRAY_DESCRIPTOR& flat = *pAllocateArray;
  Note(*pHandle, {flat.Width, flat.Height, 0, flat.Format, flat.NumChannels, 0});
  return CUDA_SUCCESS;
}

CUresult cuArray3DCreate_v2(CUarray* pHandle, const CUDA_ARRAY3D_DESCRIPTOR* pAllocateArray) {
  CUresult result = forward::cuArray3DCreate_v2(pHandle, pAllocateArray);
  if (result == CUDA_SUCCESS) Note(*pHandle, *pAllocateArray);
  return result;
}

CUresult cuArrayDestroy(CUarray hArray) {
  CUresult result = forward::cuArrayDestroy(hArray);
  if (result == CUDA_SUCCESS) ForgetArray(hArray);
  return result;
}

}  // namespace longwire::shim::hand
