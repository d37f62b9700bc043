#include "codegen/emitters.h"
#include "codegen/text.h"

namespace longwire::codegen {
namespace {

constexpr char kHeader[] =
    R"(// Every variant of every function has its own name: cuda.h must not redefine any.
#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL
#endif
#include <cuda.h>
#include <cudaProfiler.h>

#include <string>
#include <vector>

namespace longwire {

// What a driver that lacks a function says when it is called.
template <class... Arguments>
CUresult LacksFunction(Arguments...) {
  return CUDA_ERROR_NOT_SUPPORTED;
}

// The functions of a driver. The newest variant of a name is the member `symbol`, e.g.
// cuMemAlloc_v2; an older one without _vN is `symbol` + _v1. None is ever null: one that the driver
// does not have answers CUDA_ERROR_NOT_SUPPORTED.
struct DriverTable {
)";

constexpr char kHeaderEnd[] = R"(};

// Resolves every function by cuGetProcAddress_v2 of `library` (from dlopen) at the version in which
// the variant was introduced, else by its symbol. `missing` (may be null) gets the symbols that the
// driver does not have although a program may want them.
void LoadDriverTable(void* library, DriverTable* table, std::vector<std::string>* missing);

}  // namespace longwire
)";

constexpr char kSourceHead[] = R"(#include "longwire/driver_table.h"

#include <dlfcn.h>

#include <cstddef>
#include <cstring>

namespace longwire {
namespace {

struct Row {
  const char* symbol;
  const char* name;
  int introduced;
  size_t offset;
  bool wanted;  // false: no program's call ends there
};

constexpr Row kRows[] = {
)";

constexpr char kSourceEnd[] = R"(};

using GetProcAddress = CUresult (*)(const char*, void**, int, cuuint64_t,
                                    CUdriverProcAddressQueryResult*);

}  // namespace

void LoadDriverTable(void* library, DriverTable* table, std::vector<std::string>* missing) {
  *table = {};
  const auto get = reinterpret_cast<GetProcAddress>(dlsym(library, "cuGetProcAddress_v2"));
  for (const Row& row : kRows) {
    void* function = nullptr;
    CUdriverProcAddressQueryResult found{};
    if (get == nullptr || get(row.name, &function, row.introduced, CU_GET_PROC_ADDRESS_DEFAULT,
                              &found) != CUDA_SUCCESS) {
      function = nullptr;
    }
    if (function == nullptr) function = dlsym(library, row.symbol);
    if (function != nullptr) {
      std::memcpy(reinterpret_cast<char*>(table) + row.offset, &function, sizeof(function));
    } else if (row.wanted && missing != nullptr) {
      missing->push_back(row.symbol);
    }
  }
}

}  // namespace longwire
)";

// Whether it is worth a word that a driver lacks it: not of what the client refuses or answers by
// itself, nor of an older variant that the newest one stands for.
bool IsWanted(const Call& call) {
  bool asks_the_server = call.kind == Kind::kAtOnce || call.kind == Kind::kAfterReply;
  return asks_the_server && (call.newest || call.Travels());
}

class DriverTableEmitter : public Emitter {
 public:
  std::vector<File> Emit(const Api& api) const override {
    Text header, source;
    header.Raw(FileHead("The functions of a driver, resolved by name.", true));
    header.Raw(kHeader);
    source.Raw(FileHead("The functions of a driver, resolved by name.", false));
    source.Raw(kSourceHead);
    for (const Call& call : api.calls) {
      if (call.is_private) continue;
      header.Line("  CUresult (*$member$)($parameters$) = &LacksFunction;",
                  {{"member", DriverMember(call)}, {"parameters", ParameterList(call)}});
      source.Line(
          "    {\"$symbol$\", \"$name$\", $introduced$, offsetof(DriverTable, $member$), "
          "$wanted$},",
          {{"symbol", call.symbol},
           {"name", call.base},
           {"introduced", std::to_string(call.introduced)},
           {"member", DriverMember(call)},
           {"wanted", IsWanted(call) ? "true" : "false"}});
    }
    header.Raw(kHeaderEnd);
    source.Raw(kSourceEnd);
    return {{"longwire/driver_table.h", header.str()}, {"longwire/driver_table.cc", source.str()}};
  }
};

}  // namespace

std::unique_ptr<Emitter> MakeDriverTableEmitter() { return std::make_unique<DriverTableEmitter>(); }

}  // namespace longwire::codegen
