#include "client-shim/code/probes.h"

#include <dlfcn.h>

#include <algorithm>
#include <climits>
#include <string>
#include <vector>

#include "base/environment.h"
#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "client-shim/code/module.h"
#include "client-shim/connect/options.h"
#include "client-shim/context/current_context.h"
#include "client-shim/context/properties.h"
#include "client-shim/support/never_destroyed.h"
#include "client-shim/support/threads.h"
#include "longwire/shim_hand_written.h"
#include "probe/api.h"

namespace longwire::shim {
namespace {

const probe::Api* the_api = nullptr;  // set once, before the first module is loaded

inline constexpr base::LockRank kRank{1545, "shim::ProbedModules::mutex"};
struct ProbedModules {
  base::Mutex mutex{kRank};
  std::vector<Module*> modules LONGWIRE_GUARDED_BY(mutex);
};

ProbedModules& Probed() {
  static NeverDestroyed<ProbedModules> probed;
  return *probed;
}

std::vector<Module*> AllProbed() {
  base::MutexLock lock(Probed().mutex);
  return Probed().modules;
}

// Of the context's device, or the oldest of all: a library is for each.
int CapabilityFor(const Context* context) {
  int lowest = INT_MAX;
  for (int ordinal = 0;; ++ordinal) {
    const Device* device = FindDevice(ordinal);
    if (device == nullptr) return lowest == INT_MAX ? 0 : lowest;
    if (context != nullptr && context->device != ordinal) continue;
    const int capability =
        AttributeOr(*device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0) * 10 +
        AttributeOr(*device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0);
    lowest = std::min(lowest, capability);
  }
}

// The calling thread's context meanwhile.
class InContext {
 public:
  explicit InContext(Context* context) { ThisThread().contexts.push_back(context); }
  ~InContext() { ThisThread().contexts.pop_back(); }
  InContext(const InContext&) = delete;
  InContext& operator=(const InContext&) = delete;
};

bool ReadMap(Module* module, const char* symbol, std::vector<char>* contents) {
  uint64_t address = 0;
  size_t bytes = 0;
  return GlobalOf(module, symbol, GlobalKind::kAny, &address, &bytes) == CUDA_SUCCESS &&
         bytes >= contents->size() &&
         hand::cuMemcpyDtoH_v2(contents->data(), address, contents->size(), nullptr) ==
             CUDA_SUCCESS;
}

void ReadFrom(Module* module, Context* context) {
  const InContext inside(context);
  // Kernels of all streams count.
  const bool usable = hand::cuCtxSynchronize() == CUDA_SUCCESS;
  for (size_t map = 0; map < the_api->maps(); ++map) {
    std::vector<char> contents(the_api->bytes(map));
    const bool read = usable && ReadMap(module, the_api->symbol(map), &contents);
    the_api->take(map, read ? contents.data() : nullptr);
  }
}

}  // namespace

void StartProbes() {
  const char* object = base::Environment("LONGWIRE_PROBE");
  const char* library = base::Environment("LONGWIRE_PROBE_LIBRARY");
  if (object == nullptr || library == nullptr) return;
  const auto given = [](const char* name) {
    const char* value = base::Environment(name);
    return value == nullptr ? "" : value;
  };
  void* opened = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) {
    Say("there are no probes: %s; install longwire-client again", dlerror());
    return;
  }
  auto open = reinterpret_cast<probe::OpenApi>(dlsym(opened, probe::kApiSymbol));
  char sentence[1024] = "the library has no probes";
  if (open != nullptr) {
    the_api = open(LONGWIRE_VERSION, object, given("LONGWIRE_PROBE_KERNELS"),
                   given("LONGWIRE_PROBE_FILE"), sentence, sizeof(sentence));
  }
  if (the_api == nullptr) Say("there are no probes: %s", sentence);
}

ProbedImage::ProbedImage(const Image& image, const Context* context) : image_(image) {
  if (the_api == nullptr || image.bytes.empty()) return;
  size_t bytes = 0;
  text_ = the_api->rewrite(image.bytes.data(), image.bytes.size(), CapabilityFor(context), &bytes);
  if (text_ == nullptr) return;
  image_ = Image{ImageKind::kText, {reinterpret_cast<const std::byte*>(text_), bytes}, {}};
}

ProbedImage::~ProbedImage() {
  if (text_ != nullptr) the_api->release(text_);
}

void NoteProbes(Module* module) {
  base::MutexLock lock(Probed().mutex);
  Probed().modules.push_back(module);
}

void ReadProbes(Module* module) {
  if (the_api == nullptr) return;
  {
    base::MutexLock lock(Probed().mutex);
    if (std::erase(Probed().modules, module) == 0) return;
  }
  for (Context* context : LiveContexts()) {
    const bool has = module->is_library || module->context_number == context->number.load();
    if (has) ReadFrom(module, context);
  }
}

void ReadProbes(Context* context) {
  if (the_api == nullptr) return;
  for (Module* module : AllProbed()) {
    if (module->is_library) {
      ReadFrom(module, context);
    } else if (module->context_number == context->number.load()) {
      ReadFrom(module, context);
      base::MutexLock lock(Probed().mutex);
      std::erase(Probed().modules, module);
    }
  }
}

void EndProbes() {
  if (the_api == nullptr) return;
  for (Module* module : AllProbed()) ReadProbes(module);
  the_api->report();
}

}  // namespace longwire::shim
