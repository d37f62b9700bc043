// Calls for objects of the program that graphs keep alive.
#include "softgpu/driver/graph/user_object.h"

#include "softgpu/driver/graph/graph.h"

using namespace softgpu;

CUresult cuUserObjectCreate(CUuserObject* handle, void* pointer, CUhostFn destroy,
                            unsigned int references, unsigned int flags) {
  LONGWIRE_TRY(Enter());
  if (handle == nullptr || destroy == nullptr || references == 0 || references > INT32_MAX ||
      flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  auto object = std::make_shared<UserObject>();
  object->pointer = pointer;
  object->destroy = destroy;
  object->references = references;
  *handle = reinterpret_cast<CUuserObject>(Driver::Get().user_objects.Add(std::move(object)));
  return CUDA_SUCCESS;
}

CUresult cuUserObjectRetain(CUuserObject handle, unsigned int count) {
  LONGWIRE_TRY(Enter());
  auto object = Driver::Get().user_objects.Find(handle);
  if (!object || count == 0 || count > INT32_MAX) return CUDA_ERROR_INVALID_VALUE;
  object->Retain(count);
  return CUDA_SUCCESS;
}

CUresult cuUserObjectRelease(CUuserObject handle, unsigned int count) {
  LONGWIRE_TRY(Enter());
  base::MutexLock lock(Driver::mutex);
  auto object = Driver::Get().user_objects.Find(handle);
  if (!object || count == 0 || count > object->references) return CUDA_ERROR_INVALID_VALUE;
  object->Release(count);
  return CUDA_SUCCESS;
}

CUresult cuGraphRetainUserObject(CUgraph graph_handle, CUuserObject handle, unsigned int count,
                                 unsigned int flags) {
  LONGWIRE_TRY(Enter());
  base::MutexLock lock(Driver::mutex);
  auto graph = Driver::Get().graphs.Find(graph_handle);
  auto object = Driver::Get().user_objects.Find(handle);
  if (!graph || !object || count == 0 || count > INT32_MAX ||
      (flags & ~static_cast<unsigned>(CU_GRAPH_USER_OBJECT_MOVE)) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if ((flags & CU_GRAPH_USER_OBJECT_MOVE) == 0) object->Retain(count);
  graph->user_objects.Add(object, count);
  return CUDA_SUCCESS;
}

CUresult cuGraphReleaseUserObject(CUgraph graph_handle, CUuserObject handle, unsigned int count) {
  LONGWIRE_TRY(Enter());
  base::MutexLock lock(Driver::mutex);
  auto graph = Driver::Get().graphs.Find(graph_handle);
  auto object = Driver::Get().user_objects.Find(handle);
  if (!graph || !object || count == 0) return CUDA_ERROR_INVALID_VALUE;
  return graph->user_objects.Remove(object, count) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
