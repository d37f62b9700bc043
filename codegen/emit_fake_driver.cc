#include "codegen/emitters.h"
#include "codegen/text.h"

namespace longwire::codegen {
namespace {

constexpr char kHeader[] = R"(#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "longwire/driver_table.h"

namespace longwire {

// A driver for tests: every function notes its name and returns the result given to Set for it, or
// CUDA_SUCCESS. It writes no output parameters: a test that needs them puts a function of its own
// into its copy of the table.
class FakeDriver {
 public:
  // One per process: the table's functions have no other way to find it.
  static FakeDriver& Get();
  DriverTable table() const;

  // `symbol` as in cuda.h, e.g. "cuMemAlloc_v2".
  void Set(const std::string& symbol, CUresult result);
  // Forgets the notes and the results that were set.
  void Clear();
  // Symbols in the order of the calls.
  std::vector<std::string> Calls() const;
  size_t Count(const std::string& symbol) const;

  CUresult Note(const char* symbol);

 private:
  mutable base::Mutex mutex_;
  std::vector<std::string> calls_ LONGWIRE_GUARDED_BY(mutex_);
  std::map<std::string, CUresult> results_ LONGWIRE_GUARDED_BY(mutex_);
};

}  // namespace longwire
)";

constexpr char kSourceHead[] = R"(#include "longwire/fake_driver.h"

#include <algorithm>

namespace longwire {

FakeDriver& FakeDriver::Get() {
  static FakeDriver driver;
  return driver;
}

void FakeDriver::Set(const std::string& symbol, CUresult result) {
  base::MutexLock lock(mutex_);
  results_[symbol] = result;
}

void FakeDriver::Clear() {
  base::MutexLock lock(mutex_);
  calls_.clear();
  results_.clear();
}

std::vector<std::string> FakeDriver::Calls() const {
  base::MutexLock lock(mutex_);
  return calls_;
}

size_t FakeDriver::Count(const std::string& symbol) const {
  base::MutexLock lock(mutex_);
  return static_cast<size_t>(std::count(calls_.begin(), calls_.end(), symbol));
}

CUresult FakeDriver::Note(const char* symbol) {
  base::MutexLock lock(mutex_);
  calls_.push_back(symbol);
  const auto result = results_.find(symbol);
  return result == results_.end() ? CUDA_SUCCESS : result->second;
}

DriverTable FakeDriver::table() const {
  DriverTable table;
)";

class FakeDriverEmitter : public Emitter {
 public:
  std::vector<File> Emit(const Api& api) const override {
    Text header, source;
    header.Raw(FileHead("A driver table that takes notes, for tests.", true));
    header.Raw(kHeader);
    source.Raw(FileHead("A driver table that takes notes, for tests.", false));
    source.Raw(kSourceHead);
    for (const Call& call : api.calls) {
      if (call.is_private) continue;
      std::string types;
      for (const Parameter& parameter : call.parameters) {
        types += (types.empty() ? "" : ", ") + parameter.CType();
      }
      source.Line("  table.$member$ = []($types$) { return Get().Note(\"$symbol$\"); };",
                  {{"member", DriverMember(call)}, {"types", types}, {"symbol", call.symbol}});
    }
    source.Raw("  return table;\n}\n\n}  // namespace longwire\n");
    return {{"longwire/fake_driver.h", header.str()}, {"longwire/fake_driver.cc", source.str()}};
  }
};

}  // namespace

std::unique_ptr<Emitter> MakeFakeDriverEmitter() { return std::make_unique<FakeDriverEmitter>(); }

}  // namespace longwire::codegen
