// The modules whose image was loaded with probes.
#pragma once

#include <vector>

namespace longwire::shim {

struct Module;

void NoteProbed(Module* module);
std::vector<Module*> ProbedModules();
// False if it is none of these; from now on it is not.
bool ForgetProbed(Module* module);

}  // namespace longwire::shim
