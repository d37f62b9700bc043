#include "client-shim/context/green_context.h"

#include <algorithm>

#include "client-shim/session/session.h"
#include "client-shim/stream/program_streams.h"
#include "client-shim/support/never_destroyed.h"
#include "longwire/calls.h"

namespace longwire::shim {
namespace {

// The CUgreenCtx of a green context, which differs from its CUcontext.
struct GreenHandle {
  uint64_t table_index = 0;
  Context* context = nullptr;
};
using GreenTable = HandleTable<GreenHandle, HandleKind::kGreenContext>;

GreenTable& Handles() {
  static NeverDestroyed<GreenTable> table;
  return *table;
}

struct Living {
  base::Mutex mutex{base::ranks::kGreenContexts};
  std::vector<Context*> contexts LONGWIRE_GUARDED_BY(mutex);
};

Living& TheLiving() {
  static NeverDestroyed<Living> living;
  return *living;
}

CUresult CreateInWorker(Context* green, uint32_t number, CUdevResourceDesc descriptor,
                        unsigned flags) {
  calls::lwGreenContextCreate create;
  create.context = number;
  create.home = green->home->number.load();
  create.descriptor = reinterpret_cast<uint64_t>(descriptor);
  create.flags = flags;
  auto answer = green->session->CallAndWait({create.home, nullptr, 0}, create);
  green->multiprocessors = answer.reply.multiprocessors;
  return answer.code;
}

}  // namespace

CUresult NewGreenContext(Context* home, CUdevResourceDesc descriptor, unsigned flags,
                         Context** created) {
  Context* green = Contexts().New();
  if (green == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  GreenHandle* handle = Handles().New();
  if (handle == nullptr) {
    Contexts().Recycle(green);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  green->device = home->device;
  green->home = home;
  green->session = home->session;
  uint32_t number = NewContextNumber(home);
  CUresult result = CreateInWorker(green, number, descriptor, flags);
  if (result != CUDA_SUCCESS) {
    ForgetContextNumber(number);
    Contexts().Recycle(green);
    Handles().Recycle(handle);
    return result;
  }
  handle->context = green;
  green->number.store(number);
  green->green = reinterpret_cast<CUgreenCtx>(Handles().Publish(handle));
  green->handle = reinterpret_cast<CUcontext>(Contexts().Publish(green));
  Living& living = TheLiving();
  base::MutexLock lock(living.mutex);
  living.contexts.push_back(green);
  *created = green;
  return CUDA_SUCCESS;
}

CUresult EndGreenContext(Context* green) {
  {
    Living& living = TheLiving();
    base::MutexLock lock(living.mutex);
    if (std::erase(living.contexts, green) == 0) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  }
  CUresult waited = SynchronizeContext(green);
  uint32_t number = green->number.exchange(0);
  GreenHandle* handle = Handles().Find(reinterpret_cast<uint64_t>(green->green));
  if (handle != nullptr) Handles().Retire(handle);
  Contexts().Retire(green);
  CloseContext(green);
  calls::lwContextDestroy destroy;
  destroy.context = number;
  CUresult result = green->session->CallAndWait({number, nullptr, 0}, destroy).code;
  if (Stream* legacy = green->legacy.exchange(nullptr)) DestroyStream(legacy);
  ForgetContextNumber(number);
  if (green->session->ended() != CUDA_SUCCESS) return green->session->ended();
  return result == CUDA_SUCCESS ? waited : result;
}

void EndGreenContextsOf(const Context* home) {
  std::vector<Context*> contexts;
  {
    Living& living = TheLiving();
    base::MutexLock lock(living.mutex);
    contexts = living.contexts;
  }
  for (Context* green : contexts) {
    if (green->home == home) EndGreenContext(green);
  }
}

Context* FindGreenContext(CUgreenCtx handle) {
  GreenHandle* found = Handles().Find(reinterpret_cast<uint64_t>(handle));
  return found == nullptr ? nullptr : found->context;
}

}  // namespace longwire::shim
