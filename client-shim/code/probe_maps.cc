#include "client-shim/code/probe_maps.h"

#include <vector>

#include "client-shim/code/module.h"
#include "client-shim/code/probed_modules.h"
#include "client-shim/code/probes.h"
#include "client-shim/context/context.h"
#include "client-shim/support/threads.h"
#include "longwire/shim_hand_written.h"

namespace longwire::shim {
namespace {

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
  for (size_t map = 0; map < TheProbes()->maps(); ++map) {
    std::vector<char> contents(TheProbes()->bytes(map));
    const bool read = usable && ReadMap(module, TheProbes()->symbol(map), &contents);
    TheProbes()->take(map, read ? contents.data() : nullptr);
  }
}

}  // namespace

void ReadProbes(Module* module) {
  if (TheProbes() == nullptr || !ForgetProbed(module)) return;
  for (Context* context : LiveContexts()) {
    const bool has = module->is_library || module->context_number == context->number.load();
    if (has) ReadFrom(module, context);
  }
}

void ReadProbes(Context* context) {
  if (TheProbes() == nullptr) return;
  for (Module* module : ProbedModules()) {
    const bool own = !module->is_library && module->context_number == context->number.load();
    if (module->is_library || own) ReadFrom(module, context);
    if (own) ForgetProbed(module);
  }
}

void EndProbes() {
  if (TheProbes() == nullptr) return;
  for (Module* module : ProbedModules()) ReadProbes(module);
  TheProbes()->report();
}

}  // namespace longwire::shim
