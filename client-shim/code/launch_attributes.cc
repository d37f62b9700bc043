#include "client-shim/code/launch_attributes.h"

#include <array>

#include "base/try.h"
#include "client-shim/context/context.h"
#include "client-shim/context/properties.h"

namespace longwire::shim {
namespace {

constexpr size_t kMaxAttributes = 64;
// Blocks of a cluster: the limit that every device with clusters has, and the largest limit.
constexpr uint64_t kPortable = 8, kMaxBlocks = 16;

bool NamesEvent(const CUlaunchAttribute& attribute) {
  return attribute.id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT ||
         attribute.id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT;
}

using Sides = std::array<unsigned, 3>;

// What a function asks for, zeros for nothing; most ask for nothing, which is looked up once.
CUresult RequiredCluster(Function* function, int device, Sides* sides, bool* needed) {
  *sides = {};
  *needed = false;
  if (function->clusters == Function::Clusters::kNone) return CUDA_SUCCESS;
  int must = 0, values[3] = {};
  CUresult result =
      FunctionAttribute(function, CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET, device, &must);
  for (int i = 0; i < 3 && result == CUDA_SUCCESS; ++i) {
    result = FunctionAttribute(function, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH + i, device,
                               &values[i]);
    (*sides)[i] = static_cast<unsigned>(values[i]);
  }
  // A driver that does not know the attributes has no clusters.
  if (result == CUDA_ERROR_INVALID_VALUE) result = CUDA_SUCCESS;
  if (result != CUDA_SUCCESS) return result;
  *needed = must != 0;
  auto unknown = Function::Clusters::kUnknown;
  if (must == 0 && *sides == Sides{}) {
    function->clusters.compare_exchange_strong(unknown, Function::Clusters::kNone);
  }
  return CUDA_SUCCESS;
}

CUresult CheckCluster(const Sides* given, const LaunchShape& shape, Function* function,
                      const Context* context) {
  const int device = function->module->is_library ? context->device : -1;
  Sides required;
  bool needed = false;
  LONGWIRE_TRY(RequiredCluster(function, device, &required, &needed));
  if (given == nullptr && required == Sides{}) {
    return needed ? CUDA_ERROR_INVALID_CLUSTER_SIZE : CUDA_SUCCESS;
  }
  if (given != nullptr && required != Sides{} && *given != required) {
    return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  }
  const auto& [x, y, z] = given != nullptr ? *given : required;
  if (x == 0 || y == 0 || z == 0 || shape.grid_x % x != 0 || shape.grid_y % y != 0 ||
      shape.grid_z % z != 0) {
    return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  }
  if (x == 1 && y == 1 && z == 1) return CUDA_SUCCESS;
  if (AttributeOr(*FindDevice(context->device), CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 0) == 0) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  // Each side is at most the grid's, 2^31: two of them fit into 64 bits.
  uint64_t blocks = uint64_t{x} * y;
  if (blocks <= kMaxBlocks) blocks *= z;
  if (blocks <= kPortable) return CUDA_SUCCESS;
  int allowed = 0;
  LONGWIRE_TRY(FunctionAttribute(function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED,
                                 device, &allowed));
  return allowed == 0 || blocks > kMaxBlocks ? CUDA_ERROR_INVALID_CLUSTER_SIZE : CUDA_SUCCESS;
}

}  // namespace

CUresult LaunchEvents::Add(CUevent handle, int flags, const Context* context) {
  Event* event = FindEvent(handle);
  if (event == nullptr || event->context != context) return CUDA_ERROR_INVALID_HANDLE;
  // As cuda.h has it: no time, no other process, and no node of its own in a graph.
  const bool plain = (event->flags & CU_EVENT_DISABLE_TIMING) != 0 && event->shared_words == 0;
  if (!plain || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  events.push_back(event);
  return CUDA_SUCCESS;
}

CUresult LaunchEvents::Record(Stream* stream) const {
  for (Event* event : events) {
    LONGWIRE_TRY(RecordEvent(event, stream, CU_EVENT_RECORD_DEFAULT));
  }
  return CUDA_SUCCESS;
}

CUresult CheckAttributes(std::span<const CUlaunchAttribute>* attributes, const LaunchShape& shape,
                         Function* function, const Context* context, LaunchEvents* events) {
  if (attributes->size() > kMaxAttributes) return CUDA_ERROR_INVALID_VALUE;
  Sides sides;
  const Sides* cluster = nullptr;
  for (const CUlaunchAttribute& attribute : *attributes) {
    const CUlaunchAttributeValue& value = attribute.value;
    CUresult result = CUDA_SUCCESS;
    switch (attribute.id) {
      case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
        result = events->Add(value.programmaticEvent.event, value.programmaticEvent.flags, context);
        break;
      case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
        result = events->Add(value.launchCompletionEvent.event, value.launchCompletionEvent.flags,
                             context);
        break;
      case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
        return CUDA_ERROR_NOT_SUPPORTED;  // its value is a handle that device code reads
      case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        sides = {value.clusterDim.x, value.clusterDim.y, value.clusterDim.z};
        cluster = &sides;
        break;
      default:
        break;
    }
    if (result != CUDA_SUCCESS) return result;
  }
  CUresult result = CheckCluster(cluster, shape, function, context);
  if (result != CUDA_SUCCESS || events->events.empty()) return result;
  for (const CUlaunchAttribute& attribute : *attributes) {
    if (!NamesEvent(attribute)) events->others.push_back(attribute);
  }
  *attributes = events->others;
  return CUDA_SUCCESS;
}

}  // namespace longwire::shim
