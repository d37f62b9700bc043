#include "codegen/emitters.h"
#include "codegen/text.h"

namespace longwire::codegen {
namespace {

constexpr char kHead[] = R"(#include <cuda.h>
#include <cudaProfiler.h>

// Declared here, too: cuda.h has the forms for per-thread streams only if a macro requests them.
extern "C" {
)";

constexpr char kListHead[] = R"(}  // extern "C"

// call(symbol, without_session, arguments): of each function that is not refused, why it answers
// without a session ("" if it does not), and argument(type, name) for each parameter.
#define LONGWIRE_EVERY_CALL(call, argument) \
)";

std::string Arguments(const Call& call) {
  std::string list;
  for (const Parameter& parameter : call.parameters) {
    if (!list.empty()) list += ", ";
    list += "argument(" + parameter.CType() + ", \"" + parameter.name + "\")";
  }
  return list;
}

class EveryCallEmitter : public Emitter {
 public:
  std::vector<File> Emit(const Api& api) const override {
    Text declared, listed;
    for (const Call& call : api.calls) {
      if (call.is_private || call.IsUnsupported()) continue;
      Put(call, call.symbol, &declared, &listed);
      if (call.per_thread == PerThread::kNone) continue;
      Put(call, call.symbol + call.PerThreadSuffix(), &declared, &listed);
    }
    Text out;
    out.Raw(FileHead("Every exported function, for tests over all of them.", true));
    out.Raw(kHead + declared.str() + kListHead + listed.str());
    out.Line("");  // the last line of the list goes on, too
    return {{"longwire/every_call.h", out.str()}};
  }

 private:
  static void Put(const Call& call, const std::string& symbol, Text* declared, Text* listed) {
    declared->Line("CUresult $symbol$($parameters$);",
                   {{"symbol", symbol}, {"parameters", ParameterList(call)}});
    listed->Line(
        R"(  call($symbol$, "$reason$", ($arguments$)) \)",
        {{"symbol", symbol}, {"reason", call.without_session}, {"arguments", Arguments(call)}});
  }
};

}  // namespace

std::unique_ptr<Emitter> MakeEveryCallEmitter() { return std::make_unique<EveryCallEmitter>(); }

}  // namespace longwire::codegen
