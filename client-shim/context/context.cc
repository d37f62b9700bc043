#include "client-shim/context/context.h"

#include <algorithm>
#include <unordered_map>

#include "base/try.h"
#include "client-shim/context/current_context.h"
#include "client-shim/context/properties.h"
#include "client-shim/session/process_state.h"
#include "client-shim/session/session.h"
#include "client-shim/stream/stream.h"
#include "client-shim/support/never_destroyed.h"
#include "client-shim/support/threads.h"
#include "longwire/calls.h"

namespace longwire::shim {
namespace {

struct Registry {
  base::Mutex mutex{base::ranks::kContextRegistry};
  std::vector<Context*> primary;  // by device; written before cuInit returns
  std::unordered_map<uint32_t, Context*> by_number LONGWIRE_GUARDED_BY(mutex);
  std::atomic<uint32_t> next_number{1};
  ContextParts parts;  // written before cuInit returns
};

Registry& TheRegistry() {
  static NeverDestroyed<Registry> registry;
  return *registry;
}

// Stands for the current context in private interfaces.
const CUcontext kCurrent = reinterpret_cast<CUcontext>(~uintptr_t{0});

CUresult CreateInWorker(Context* context, uint32_t number) {
  calls::lwContextCreate create;
  create.context = number;
  create.device = FindDevice(context->device)->server_ordinal;
  create.flags = context->flags.load();
  create.primary = context->primary;
  return context->session->CallAndWait({number, nullptr, 0}, create).code;
}

}  // namespace

std::vector<Context*> LiveContexts() {
  Registry& registry = TheRegistry();
  base::MutexLock lock(registry.mutex);
  std::vector<Context*> contexts;
  for (auto& [number, context] : registry.by_number) {
    if (context->number.load() == number) contexts.push_back(context);  // no green one's number
  }
  return contexts;
}

uint32_t NewContextNumber(Context* context) {
  Registry& registry = TheRegistry();
  uint32_t number = registry.next_number++;
  base::MutexLock lock(registry.mutex);
  registry.by_number[number] = context;
  return number;
}

void ForgetContextNumber(uint32_t number) {
  Registry& registry = TheRegistry();
  base::MutexLock lock(registry.mutex);
  registry.by_number.erase(number);
}

ContextTable& Contexts() {
  static NeverDestroyed<ContextTable> table;
  return *table;
}

void SetContextParts(const ContextParts& parts) { TheRegistry().parts = parts; }

void CreatePrimaryContext(int device) {
  Context* context = Contexts().New();
  context->device = device;
  context->session = FindDevice(device)->session;
  context->primary = true;
  context->home = context;
  context->handle = reinterpret_cast<CUcontext>(Contexts().Publish(context));
  TheRegistry().primary.push_back(context);
}

Context* PrimaryContext(int device) {
  std::vector<Context*>& primary = TheRegistry().primary;
  if (device < 0 || static_cast<size_t>(device) >= primary.size()) return nullptr;
  return primary[device];
}

CUresult ActivatePrimary(Context* context) {
  {
    base::MutexLock lock(context->mutex);
    while (context->activating) context->activated.Wait(lock);
    if (context->number.load() != 0) return CUDA_SUCCESS;
    context->activating = true;
  }
  uint32_t number = NewContextNumber(context);
  CUresult result = CreateInWorker(context, number);
  if (result != CUDA_SUCCESS) ForgetContextNumber(number);
  {
    base::MutexLock lock(context->mutex);
    if (result == CUDA_SUCCESS) context->number.store(number);
    context->activating = false;
  }
  context->activated.NotifyAll();
  if (result != CUDA_SUCCESS) return result;
  result = TheRegistry().parts.made(context);
  if (result != CUDA_SUCCESS) EndContext(context);
  return result;
}

CUresult NewContext(int device, unsigned flags, Context** created) {
  Context* context = Contexts().New();
  if (context == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  context->device = device;
  context->session = FindDevice(device)->session;
  context->home = context;
  context->flags.store(flags);
  uint32_t number = NewContextNumber(context);
  CUresult result = CreateInWorker(context, number);
  if (result != CUDA_SUCCESS) {
    ForgetContextNumber(number);
    Contexts().Recycle(context);
    return result;
  }
  context->number.store(number);
  context->handle = reinterpret_cast<CUcontext>(Contexts().Publish(context));
  result = TheRegistry().parts.made(context);
  if (result != CUDA_SUCCESS) {
    Contexts().Retire(context);
    EndContext(context);
    return result;
  }
  *created = context;
  return CUDA_SUCCESS;
}

void CloseContext(Context* context) { TheRegistry().parts.closed(context); }

CUresult EndContext(Context* context) {
  uint32_t number;
  std::vector<Stream*> streams;
  const ContextParts& parts = TheRegistry().parts;
  parts.ends(context);
  {
    base::MutexLock lock(context->mutex);
    while (context->activating) context->activated.Wait(lock);
    number = context->number.exchange(0);
    if (number == 0) return CUDA_SUCCESS;
    streams.swap(context->streams);
    context->legacy.store(nullptr);
  }
  CloseContext(context);
  calls::lwContextDestroy destroy;
  destroy.context = number;
  CUresult result = context->session->CallAndWait({number, nullptr, 0}, destroy).code;
  parts.ended(number);
  for (Stream* stream : streams) {
    // The worker has ended all of its work, finished or not.
    stream->finished.store(stream->last.load());
    DestroyStream(stream);
    Release(stream);
  }
  context->session->WakeWaiters();  // threads that wait for its streams
  ForgetContextNumber(number);
  context->sticky.store(0);
  context->cache_config.store(CU_FUNC_CACHE_PREFER_NONE);
  context->once.store(0);
  // A remaining context takes over what outlives contexts. If that fails, which is reported, the
  // next new context takes it over.
  std::vector<Context*> left = LiveContexts();
  std::erase_if(left, [&](const Context* one) { return one->session != context->session; });
  if (!left.empty()) parts.made(left.front());
  const CUresult ended = context->session->ended();
  return ended != CUDA_SUCCESS ? ended : result;
}

Context* FindContext(CUcontext handle) {
  if (handle == nullptr || handle == kCurrent) {
    ThreadState& thread = ThisThread();
    return thread.contexts.empty() ? nullptr : thread.contexts.back();
  }
  return Contexts().Find(reinterpret_cast<uint64_t>(handle));
}

Context* ContextByNumber(uint32_t number) {
  Registry& registry = TheRegistry();
  base::MutexLock lock(registry.mutex);
  auto found = registry.by_number.find(number);
  return found == registry.by_number.end() ? nullptr : found->second;
}

std::vector<StreamPoint> UnfinishedWorkOfAll() {
  std::vector<StreamPoint> points;
  for (Context* context : LiveContexts()) {
    std::vector<StreamPoint> more = UnfinishedWork(context);
    points.insert(points.end(), more.begin(), more.end());
  }
  return points;
}

bool IsOnlyContext(const Context* context) {
  Registry& registry = TheRegistry();
  base::MutexLock lock(registry.mutex);
  return std::ranges::all_of(registry.by_number,
                             [&](const auto& entry) { return entry.second == context; });
}

CUresult RequireOwner(Context** owner) {
  ThreadState& thread = ThisThread();
  if (thread.contexts.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  *owner = thread.contexts.back();
  if ((*owner)->number.load(std::memory_order_acquire) != 0) return CUDA_SUCCESS;
  bool gone = !(*owner)->primary || (*owner)->was_reset.load();
  if (gone) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  return ActivatePrimary(*owner);
}

CUresult RequireContext(Context** context) {
  CUresult result = RequireOwner(context);
  if (result == CUDA_SUCCESS) *context = (*context)->home;
  return result;
}

Where WhereOf(const Context* context) {
  return {context->number.load(), nullptr, 0, context->session};
}

Where WhereOfNumber(uint32_t number) {
  const Context* context = ContextByNumber(number);
  return {number, nullptr, 0, context == nullptr ? &TheSession() : context->session};
}

CUresult TakeError(Context* context) {
  int sticky = context->sticky.load(std::memory_order_acquire);
  if (sticky != 0) return static_cast<CUresult>(sticky);
  if (context->once.load(std::memory_order_relaxed) == 0) return CUDA_SUCCESS;
  return static_cast<CUresult>(context->once.exchange(0));
}

CUresult RequireHealthyContext(Context** context) {
  LONGWIRE_TRY(RequireContext(context));
  if (ClientSession::over() != CUDA_SUCCESS) return ClientSession::over();
  return TakeError(*context);
}

// For the private tables.

CUcontext CurrentContext() {
  if (CurrentProcessState() != ProcessState::kReady) return nullptr;
  ThreadState& thread = ThisThread();
  return thread.contexts.empty() ? nullptr : thread.contexts.back()->handle;
}

CUcontext PrimaryContextHandle(CUdevice device) {
  Context* context = PrimaryContext(device);
  return context == nullptr ? nullptr : context->handle;
}

bool IsContext(CUcontext context) {
  return Contexts().Find(reinterpret_cast<uint64_t>(context)) != nullptr;
}

bool ContextUniqueId(CUcontext context, uint64_t* id) {
  Context* found = FindContext(context);
  if (found == nullptr) return false;
  if (found->primary && found->number.load() == 0 && ActivatePrimary(found) != CUDA_SUCCESS) {
    return false;
  }
  *id = found->number.load();
  return true;
}

bool ContextDevice(CUcontext context, CUdevice* device) {
  Context* found = FindContext(context);
  if (found == nullptr) return false;
  *device = found->device;
  return true;
}

}  // namespace longwire::shim
