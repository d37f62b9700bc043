#include "client-shim/code/probed_modules.h"

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "client-shim/support/never_destroyed.h"

namespace longwire::shim {
namespace {

struct WithProbes {
  base::Mutex mutex{base::ranks::kProbedModules};
  std::vector<Module*> modules LONGWIRE_GUARDED_BY(mutex);
};

WithProbes& Probed() {
  static NeverDestroyed<WithProbes> probed;
  return *probed;
}

}  // namespace

void NoteProbed(Module* module) {
  base::MutexLock lock(Probed().mutex);
  Probed().modules.push_back(module);
}

std::vector<Module*> ProbedModules() {
  base::MutexLock lock(Probed().mutex);
  return Probed().modules;
}

bool ForgetProbed(Module* module) {
  base::MutexLock lock(Probed().mutex);
  return std::erase(Probed().modules, module) != 0;
}

}  // namespace longwire::shim
