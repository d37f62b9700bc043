#include "client-shim/tables/context_storage.h"

#include <atomic>
#include <map>
#include <utility>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "client-shim/context/current_context.h"

namespace longwire::shim {
namespace {

struct Entry {
  void* value = nullptr;
  StorageDestructor destroy = nullptr;
};

using Key = std::pair<CUcontext, void*>;

// Never destroyed: the runtime calls in from exit handlers.
struct ContextStorage {
  base::Mutex mutex{base::ranks::kContextStorage};
  std::map<Key, Entry> entries LONGWIRE_GUARDED_BY(mutex);
  std::atomic<uint64_t> changes{1};
};

ContextStorage& TheStorage() {
  static auto* storage = new ContextStorage;
  return *storage;
}

// The answer this thread got last, good as long as nothing changed since.
struct LastAnswer {
  CUcontext context;
  void* key;
  void* value;
  uint64_t changes;
};
thread_local constinit LastAnswer last_answer{};

CUcontext Resolve(CUcontext context) {
  bool current = context == nullptr || context == reinterpret_cast<CUcontext>(-1);
  return current ? CurrentContext() : context;
}

}  // namespace

CUresult PutContextStorage(CUcontext context, void* key, void* value, StorageDestructor destroy) {
  context = Resolve(context);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  ContextStorage& storage = TheStorage();
  base::MutexLock lock(storage.mutex);
  storage.entries[{context, key}] = {value, destroy};
  ++storage.changes;
  return CUDA_SUCCESS;
}

CUresult DeleteContextStorage(CUcontext context, void* key) {
  context = Resolve(context);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  ContextStorage& storage = TheStorage();
  base::MutexLock lock(storage.mutex);
  size_t erased = storage.entries.erase({context, key});
  ++storage.changes;
  return erased != 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult GetContextStorage(void** value, CUcontext context, void* key) {
  context = Resolve(context);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  ContextStorage& storage = TheStorage();
  uint64_t changes = storage.changes.load(std::memory_order_acquire);
  LastAnswer& last = last_answer;
  if (last.changes == changes && last.context == context && last.key == key) {
    *value = last.value;
    return CUDA_SUCCESS;
  }
  base::MutexLock lock(storage.mutex);
  auto found = storage.entries.find({context, key});
  if (found == storage.entries.end()) return CUDA_ERROR_INVALID_HANDLE;
  *value = found->second.value;
  last = {context, key, found->second.value, changes};
  return CUDA_SUCCESS;
}

void DropContextStorage(CUcontext context) {
  ContextStorage& storage = TheStorage();
  std::vector<std::pair<void*, Entry>> dropped;
  {
    base::MutexLock lock(storage.mutex);
    auto first = storage.entries.lower_bound({context, nullptr});
    auto last = first;
    for (; last != storage.entries.end() && last->first.first == context; ++last) {
      dropped.emplace_back(last->first.second, last->second);
    }
    storage.entries.erase(first, last);
    ++storage.changes;
  }
  // Outside the lock: destructors call back into the driver.
  for (auto& [key, entry] : dropped) {
    if (entry.destroy != nullptr) entry.destroy(context, key, entry.value);
  }
}

}  // namespace longwire::shim
