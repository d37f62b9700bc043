#include <algorithm>
#include <tuple>

#include "codegen/emitters.h"
#include "codegen/text.h"

namespace longwire::codegen {
namespace {

constexpr char kHeader[] = R"(#include <span>

namespace longwire::shim {

// One variant of a function that cuGetProcAddress can give.
struct ProcEntry {
  const char* name;  // without _vN, _ptds, _ptsz
  int introduced;    // 1000 * major + 10 * minor
  int mode;          // 0 legacy default stream, 2 per-thread default stream
  void* function;
  const char* symbol;  // the exported name
};

// Sorted by name, mode, introduced. Unsupported functions are in it, as they are in a driver whose
// device lacks what they need: they answer CUDA_ERROR_NOT_SUPPORTED.
std::span<const ProcEntry> ProcTable();

}  // namespace longwire::shim
)";

constexpr char kSourceHead[] = R"(#include "longwire/proc_table.h"

#include "longwire/shim_hand_written.h"

// As cuda.h declares them, or the compiler says so.
extern "C" {
)";

constexpr char kTableHead[] = R"(}  // extern "C"

namespace longwire::shim {
namespace {

template <class F>
void* Address(F* function) {
  return reinterpret_cast<void*>(function);
}

}  // namespace

std::span<const ProcEntry> ProcTable() {
  static const ProcEntry table[] = {
)";

struct Row {
  std::string name;
  int mode;
  int introduced;
  std::string symbol;
  std::string parameters;
  auto operator<=>(const Row&) const = default;
};

class ProcTableEmitter : public Emitter {
 public:
  std::vector<File> Emit(const Api& api) const override {
    std::vector<Row> rows;
    for (const Call& call : api.calls) {
      if (call.is_private) continue;
      rows.push_back({call.base, 0, call.introduced, call.symbol, ParameterList(call)});
      if (call.per_thread != PerThread::kNone) {
        rows.push_back({call.base, 2, call.introduced_per_thread,
                        call.symbol + call.PerThreadSuffix(), ParameterList(call)});
      }
    }
    std::sort(rows.begin(), rows.end());
    Text source;
    source.Raw(FileHead("What cuGetProcAddress finds.", false));
    source.Raw(kSourceHead);
    for (const Row& row : rows) {
      source.Line("CUresult $symbol$($parameters$);",
                  {{"symbol", row.symbol}, {"parameters", row.parameters}});
    }
    source.Raw(kTableHead);
    for (const Row& row : rows) {
      source.Line("      {\"$name$\", $introduced$, $mode$, Address(&::$symbol$), \"$symbol$\"},",
                  {{"name", row.name},
                   {"introduced", std::to_string(row.introduced)},
                   {"mode", std::to_string(row.mode)},
                   {"symbol", row.symbol}});
    }
    source.Raw("  };\n  return table;\n}\n\n}  // namespace longwire::shim\n");
    Text header;
    header.Raw(FileHead("What cuGetProcAddress finds.", true));
    header.Raw(kHeader);
    return {{"longwire/proc_table.h", header.str()}, {"longwire/proc_table.cc", source.str()}};
  }
};

}  // namespace

std::unique_ptr<Emitter> MakeProcTableEmitter() { return std::make_unique<ProcTableEmitter>(); }

}  // namespace longwire::codegen
