#include "client-shim/code/probe_maps.h"

#include <algorithm>
#include <vector>

#include "client-shim/code/module.h"
#include "client-shim/code/probe_clock.h"
#include "client-shim/code/probed_modules.h"
#include "client-shim/code/probes.h"
#include "client-shim/context/context.h"
#include "client-shim/support/threads.h"
#include "client-shim/tracing/recorder.h"
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

// What probes saw begin and end, on this host's clock, for the trace.
void NoteSpans(size_t map, const std::vector<char>& contents, int device) {
  const probe::Api& probes = *TheProbes();
  uint64_t lost = 0;
  std::vector<probe::Span> spans(probes.spans(map, contents.data(), nullptr, 0, &lost));
  probes.spans(map, contents.data(), spans.data(), spans.size(), &lost);
  for (const probe::Span& span : spans) {
    ProbeTime began, ended;
    if (!ToProbeTime(device, span.began, &began) || !ToProbeTime(device, span.ended, &ended)) {
      ++lost;
      continue;
    }
    TheRecorder().Probe({device, probes.title(map), span.kernel, span.number, began.at,
                         std::max(began.at, ended.at), ended.error});
  }
  if (lost != 0) TheRecorder().Probe({device, probes.title(map), nullptr, lost, TraceNow()});
}

void ReadFrom(Module* module, Context* context) {
  const InContext inside(context);
  // Kernels of all streams count.
  const bool usable = hand::cuCtxSynchronize() == CUDA_SUCCESS;
  if (usable) CompareProbeClock(context);
  for (size_t map = 0; map < TheProbes()->maps(); ++map) {
    std::vector<char> contents(TheProbes()->bytes(map));
    const bool read = usable && ReadMap(module, TheProbes()->symbol(map), &contents);
    TheProbes()->take(map, read ? contents.data() : nullptr);
    if (read && IsRecording()) NoteSpans(map, contents, context->device);
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
