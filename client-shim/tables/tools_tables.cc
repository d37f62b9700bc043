// The tables that cuBLAS, cuBLASLt and cuFFT ask for: numbers of contexts and streams, the
// functions of a module.

#include <cstdint>
#include <vector>

#include "client-shim/context/current_context.h"
#include "client-shim/tables/table.h"
#include "longwire/shim_hand_written.h"

namespace longwire::shim {
namespace {

// Slots of TOOLS_CONTEXT and TOOLS_MODULE on the oldest driver that has them; callers test the
// size.
constexpr size_t kContextWords = 95;
constexpr size_t kModuleWords = 88;

CUresult ContextDeviceSlot(CUcontext context, CUdevice* device) {
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return ContextDevice(context, device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult ContextIdSlot(CUcontext context, uint64_t* id) {
  if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return ContextUniqueId(context, id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

// The "stream object" that slot 51 gives out and slot 39 takes is the stream's number, shifted so
// that it is never null.
CUresult ResolveStream(CUcontext context, CUstream stream, void** object, uint32_t per_thread) {
  if (object == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (per_thread != 0) stream = CU_STREAM_PER_THREAD;
  uint64_t id = 0;
  if (!StreamUniqueId(context, stream, &id)) return CUDA_ERROR_INVALID_HANDLE;
  *object = reinterpret_cast<void*>(id << 1 | 1);
  return CUDA_SUCCESS;
}

CUresult ResolvedStreamId(CUcontext, void* object, uint64_t* id) {
  if (id == nullptr || object == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *id = reinterpret_cast<uint64_t>(object) >> 1;
  return CUDA_SUCCESS;
}

using FunctionVisitor = void (*)(void* user, CUfunction function, uint64_t owner);

// Answers 1, not CUDA_SUCCESS, when it went through: cuFFT takes anything else as a failure.
int VisitFunctions(CUcontext, CUmodule module, FunctionVisitor visit, void* user) {
  unsigned count = 0;
  if (hand::cuModuleGetFunctionCount(&count, module) != CUDA_SUCCESS) return 0;
  std::vector<CUfunction> functions(count);
  if (hand::cuModuleEnumerateFunctions(functions.data(), count, module) != CUDA_SUCCESS) return 0;
  for (CUfunction function : functions) visit(user, function, 0);
  return 1;
}

}  // namespace

const void* const* ToolsContextTable() {
  static const auto table = [] {
    auto t = RefusingTable<kContextWords>();
    t[3] = Slot(&ContextDeviceSlot);
    t[4] = Slot(&ContextIdSlot);
    t[39] = Slot(&ResolvedStreamId);
    t[51] = Slot(&ResolveStream);
    return t;
  }();
  return table.data();
}

const void* const* ToolsModuleTable() {
  static const auto table = [] {
    auto t = RefusingTable<kModuleWords>();
    t[7] = Slot(&VisitFunctions);
    return t;
  }();
  return table.data();
}

}  // namespace longwire::shim
