// State shared by the driver half of the software device: devices, contexts, handle tables, the
// latched fault, and how every exported call begins.
//
// No lock is held while waiting for work or running the program's code.
#pragma once

#pragma GCC visibility push(default)
#include <cuda.h>
#pragma GCC visibility pop

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/try.h"
#include "softgpu/engine/mutex.h"

// For exported functions that this cuda.h no longer declares.
#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace softgpu {

constexpr int kMaxDevices = 64;

class Completion;
class Stream;
struct Array;
struct Condition;
struct Context;
struct Device;
struct Event;
struct Function;
struct Graph;
struct GraphExec;
struct GraphNode;
struct Link;
struct GreenContext;
struct GreenResources;
struct MemoryPool;
struct MipmappedArray;
struct Module;
struct TextureReference;
struct UserObject;

// Objects behind opaque handles: a handle is good only while it is in its table.
template <class T>
class Registry {
 public:
  T* Add(std::shared_ptr<T> object) {
    base::MutexLock lock(mutex_);
    T* handle = object.get();
    objects_[handle] = std::move(object);
    return handle;
  }
  std::shared_ptr<T> Find(const void* handle) const {
    base::MutexLock lock(mutex_);
    auto found = objects_.find(handle);
    return found == objects_.end() ? nullptr : found->second;
  }
  std::shared_ptr<T> Remove(const void* handle) {
    base::MutexLock lock(mutex_);
    auto found = objects_.find(handle);
    if (found == objects_.end()) return nullptr;
    auto object = std::move(found->second);
    objects_.erase(found);
    return object;
  }
  std::vector<std::shared_ptr<T>> All() const {
    base::MutexLock lock(mutex_);
    std::vector<std::shared_ptr<T>> all;
    for (auto& [handle, object] : objects_) all.push_back(object);
    return all;
  }

 private:
  mutable base::Mutex mutex_{base::ranks::kSoftgpuRegistry};
  std::unordered_map<const void*, std::shared_ptr<T>> objects_ LONGWIRE_GUARDED_BY(mutex_);
};

class Driver {
 public:
  static Driver& Get();  // never destroyed: threads of ours may outlive main

  // Guards the order of submissions, contexts, captures, graphs and the records of events.
  static base::Mutex mutex;
  std::vector<std::unique_ptr<Device>> devices;  // constant after cuInit
  std::atomic<bool> initialized{false};
  std::atomic<bool> forked{false};  // this is a child of an initialised process
  std::atomic<int> fault{0};        // CUresult that every later call answers
  std::atomic<uint64_t> next_id{1};

  Registry<Array> arrays;
  Registry<MipmappedArray> mipmaps;
  Registry<Context> contexts;
  Registry<Stream> streams;
  Registry<Event> events;
  Registry<Module> modules;
  Registry<TextureReference> references;
  Registry<Function> functions;
  Registry<Graph> graphs;
  Registry<GraphNode> nodes;
  Registry<GraphExec> execs;
  Registry<Condition> conditions;
  Registry<MemoryPool> pools;
  Registry<Link> links;
  Registry<GreenContext> greens;
  Registry<GreenResources> descriptors;
  Registry<UserObject> user_objects;

  Device* FindDevice(CUdevice ordinal);
  // Latches `code` if it is one that poisons a context natively, else keeps it for the next
  // synchronizing call of `context`; writes `message` on stderr.
  void Fail(Context& context, int code, const std::string& message);
};

// A context lives as long as the process, so that a stale handle answers CONTEXT_IS_DESTROYED.
struct Context {
  int device = 0;
  bool primary = false;
  // Of a green context: the primary one, whose memory, modules and events it uses. Else itself.
  Context* home = nullptr;
  GreenContext* green = nullptr;  // its handle, if it is one
  int multiprocessors = 0;        // that a cooperative launch may count on
  uint64_t id = 0;
  unsigned api_version = 3020;
  std::atomic<unsigned> flags{0};
  std::atomic<bool> alive{true};
  std::atomic<bool> cancelled{false};  // set while the context is being torn down
  std::atomic<int> late_error{0};      // CUresult of a launch that failed without a fault
  std::atomic<int> cache_config{0};
  std::atomic<size_t> limits[CU_LIMIT_MAX] = {};

  int references LONGWIRE_GUARDED_BY(Driver::mutex) = 0;  // of a primary context
  // Of another context: its creation, and each cuCtxAttach.
  int attachments LONGWIRE_GUARDED_BY(Driver::mutex) = 1;
  // The contexts whose memory this one's kernels may access.
  std::set<Context*> peers LONGWIRE_GUARDED_BY(Driver::mutex);
  std::shared_ptr<Stream> legacy_stream LONGWIRE_GUARDED_BY(Driver::mutex);
  // All streams, the legacy one included.
  std::vector<std::shared_ptr<Stream>> streams LONGWIRE_GUARDED_BY(Driver::mutex);
  std::vector<Context*> parts LONGWIRE_GUARDED_BY(Driver::mutex);  // its green contexts
  // What all later work waits for.
  std::vector<std::shared_ptr<Completion>> gates LONGWIRE_GUARDED_BY(Driver::mutex);
};

struct Device {
  int ordinal = 0;
  std::string name;
  CUuuid uuid = {};
  char pci_bus_id[16] = {};
  size_t total_bytes = 0;
  Context* primary = nullptr;
  std::shared_ptr<MemoryPool> default_pool;
  CUmemoryPool current_pool LONGWIRE_GUARDED_BY(Driver::mutex) = nullptr;
};

// How a call begins: refuses before cuInit, after fork, inside a host function, after a fault.
CUresult Enter();
// The same, and hands out the calling thread's current context: of a green one its home.
CUresult Enter(Context** context);
// The context `handle` or, for null, the current one, green or not.
CUresult ResolveContext(CUcontext handle, Context** context);
std::vector<Context*>& ContextStack();  // the calling thread's; its current context is the last
Context* CurrentContext();              // green or not; null if none
inline CUcontext Handle(const Context* context) {
  return reinterpret_cast<CUcontext>(const_cast<Context*>(context));
}

// True on a thread that runs a host function or callback of a stream.
bool& InHostFunction();

// What a refused call returns; names it on stderr, once per name.
CUresult Refuse(const char* name);
// A line of the device's own, where standard error was at cuInit. Later that may be for the text of
// kernels only (failed asserts).
void Remark(const char* format, ...) __attribute__((format(printf, 1, 2)));

// The descriptor that stands for standard error as it was at the first call.
int KeepErrorOutput();

}  // namespace softgpu
