// What probes wrote into their maps, which are variables of modules: read when those end.
#pragma once

namespace longwire::shim {

struct Context;
struct Module;

// Before the module is unloaded, and before the context ends. Waits for the context's kernels.
void ReadProbes(Module* module);
void ReadProbes(Context* context);
// When the program ends: reads all that is left, and prints.
void EndProbes();

}  // namespace longwire::shim
