// The engine: DPDK's librte_bpf, without its environment layer. Its verifier follows every path
// of a hook; it refuses loops, and every access outside of the context and of 512 bytes of stack.
#include <rte_bpf.h>
#include <rte_errno.h>
#include <rte_log.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "base/reason.h"
#include "policy/engine.h"

namespace longwire::policy {

namespace {

constexpr size_t kWord = sizeof(uint64_t);

class RteHook final : public CompiledHook {
 public:
  explicit RteHook(rte_bpf* program) : program_(program) {
    rte_bpf_jit machine{};
    if (rte_bpf_get_jit(program_, &machine) == 0) function_ = machine.func;
  }
  ~RteHook() override { rte_bpf_destroy(program_); }
  uint64_t Run(void* context) const override { return rte_bpf_exec(program_, context); }
  MachineCode function() const override { return function_; }

 private:
  rte_bpf* const program_;
  MachineCode function_ = nullptr;
};

// Collects what the library logs; it has one stream for the process. While hooks run it logs
// nothing: interpreted ones would log each division by zero.
class Sayings {
 public:
  Sayings() : stream_(open_memstream(&text_, &size_)) {
    rte_log_set_global_level(RTE_LOG_NOTICE);
    if (stream_ != nullptr) rte_openlog_stream(stream_);
  }
  ~Sayings() {
    rte_log_set_global_level(RTE_LOG_EMERG);
    rte_openlog_stream(nullptr);
    if (stream_ != nullptr) std::fclose(stream_);
    std::free(text_);
  }
  Sayings(const Sayings&) = delete;
  Sayings& operator=(const Sayings&) = delete;

  std::string Take() {
    if (stream_ == nullptr || std::fflush(stream_) != 0) return "";
    return {text_, size_};
  }

 private:
  char* text_ = nullptr;
  size_t size_ = 0;
  FILE* stream_;
};

struct Meaning {
  const char* said;   // by the library
  const char* plain;  // what is wrong and what to do
};
constexpr Meaning kMeanings[] = {
    {"loops detected", "it has a loop: a policy has none, so unroll it"},
    {"unreachable code", "it has instructions that are never reached: take them out"},
    {"memory boundary violation",
     "it reads or writes outside of its argument or stack: use the structure of its hook"},
    {"undefined value", "it uses a value that was never set: set it first"},
    {"undefined argument", "it passes a value that was never set: set it first"},
    {"misaligned memory access", "it reads or writes across a field: access whole fields"},
    {"access to uninitialized memory", "it reads stack that was never written: write it first"},
    {"division by 0", "it divides by zero: test the divisor first"},
    {"unexpected pointer", "it computes with a pointer as with a number, which is not allowed"},
    {"pointer", "it uses a pointer in a way that is not allowed: use fields of its argument only"},
    {"invalid opcode", "it has an instruction that is not known: compile with -mcpu=v2"},
    {"invalid jump", "it jumps outside of the function: compile it again"},
    {"R10 is read-only", "it changes the frame pointer: compile it again with clang"},
    {"return value", "it does not return a number on every path: return LW_ANSWERED"},
    {"stack", "it needs more than 512 bytes of stack: use fewer variables"},
};

// The instruction that a text names behind "pc:"; -1: none.
long InstructionIn(const std::string& text) {
  const size_t at = text.find("pc:");
  if (at == std::string::npos) return -1;
  char* end = nullptr;
  const char* start = text.c_str() + at + std::strlen("pc:");
  const long number = std::strtol(start, &end, 10);
  return end == start ? -1 : number;
}

std::string Explain(const HookCode& code, const std::string& said, int error) {
  const long at = InstructionIn(said);
  std::string sentence = at < 0 ? code.function : code.Place(static_cast<uint32_t>(at));
  std::string line = said.substr(0, said.find('\n'));
  for (const Meaning& meaning : kMeanings) {
    if (said.find(meaning.said) == std::string::npos) continue;
    return sentence + ": " + meaning.plain + " (" + line + ")";
  }
  if (line.empty()) line = base::Reason(error);
  return sentence + ": the verifier refuses it (" + line + ")";
}

class RteEngine final : public Engine {
 public:
  std::unique_ptr<CompiledHook> Compile(const HookCode& code, size_t context_bytes,
                                        std::span<const HelperShape> helpers,
                                        std::string* sentence) override {
    std::vector<rte_bpf_xsym> symbols;
    for (const HelperShape& helper : helpers) symbols.push_back(SymbolOf(helper));
    std::vector<ebpf_insn> instructions(code.instructions.size());
    std::memcpy(instructions.data(), code.instructions.data(),
                instructions.size() * sizeof(ebpf_insn));
    for (const auto& [at, name] : code.helpers) {
      size_t index = 0;
      while (index < helpers.size() && name != helpers[index].name) ++index;
      if (index == helpers.size()) {
        *sentence = code.Place(at) + ": there is no helper '" + name +
                    "'; longwire/policy.h has those that there are";
        return nullptr;
      }
      instructions[at].imm = static_cast<int32_t>(index);
    }
    rte_bpf_prm parameters{};
    parameters.ins = instructions.data();
    parameters.nb_ins = static_cast<uint32_t>(instructions.size());
    parameters.xsym = symbols.data();
    parameters.nb_xsym = static_cast<uint32_t>(symbols.size());
    parameters.prog_arg = {RTE_BPF_ARG_PTR, context_bytes, 0};
    base::MutexLock lock(mutex_);
    Sayings sayings;
    rte_bpf* program = rte_bpf_load(&parameters);
    const int error = rte_errno;
    if (program != nullptr) return std::make_unique<RteHook>(program);
    *sentence = Explain(code, sayings.Take(), error);
    return nullptr;
  }

 private:
  static rte_bpf_xsym SymbolOf(const HelperShape& helper) {
    rte_bpf_xsym symbol{};
    symbol.name = helper.name;
    symbol.type = RTE_BPF_XTYPE_FUNC;
    symbol.func.val = helper.function;
    symbol.func.nb_args = helper.arguments;
    for (uint32_t i = 0; i < helper.arguments; ++i)
      symbol.func.args[i] = {RTE_BPF_ARG_RAW, kWord, 0};
    symbol.func.ret = {RTE_BPF_ARG_RAW, kWord, 0};
    return symbol;
  }

  base::Mutex mutex_{base::ranks::kPolicyCompiler};
};

}  // namespace

}  // namespace longwire::policy

extern "C" __attribute__((visibility("default"))) longwire::policy::Engine* longwire_policy_engine(
    const char* version) {
  static longwire::policy::RteEngine engine;
  return std::strcmp(version, LONGWIRE_VERSION) == 0 ? &engine : nullptr;
}
