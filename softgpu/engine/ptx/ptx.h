// What the parser makes of PTX text: modules, variables, functions and instructions, still with
// names instead of addresses. Views point into the text. lower.h turns functions into code.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace softgpu {

enum class Type : uint8_t {
  kNone,
  kPred,
  kB8,
  kB16,
  kB32,
  kB64,
  kB128,
  kU8,
  kU16,
  kU32,
  kU64,
  kS8,
  kS16,
  kS32,
  kS64,
  kF16,
  kF16x2,
  kBF16,
  kBF16x2,
  kF32,
  kF64,
};

std::optional<Type> ParseType(std::string_view directive);  // ".u32"
int TypeBytes(Type type);                                   // predicates count 1
bool IsSigned(Type type);
bool IsFloat(Type type);  // f16, bf16, f32, f64; not the packed pairs

enum class Space : uint8_t { kGeneric, kGlobal, kConst, kShared, kLocal, kParam };

// One value of an initialiser: a number, or the address of a symbol plus an offset.
struct Initializer {
  uint64_t bits = 0;  // as wide as the variable's element
  bool is_float32 = false;
  bool is_float64 = false;
  std::string_view symbol;
  uint32_t line = 0;
};

// Names of textures and surfaces are no memory.
enum class Reference : uint8_t { kNone, kTexture, kSurface };

struct Variable {
  std::string_view name;
  Space space = Space::kGlobal;
  Type type = Type::kB8;
  uint64_t alignment = 1;
  uint64_t bytes = 0;  // 0: extern array without a size
  uint64_t element_bytes = 1;
  bool external = false;
  bool managed = false;
  Reference reference = Reference::kNone;
  uint32_t line = 0;
  std::vector<Initializer> initializers;
};

struct PtxOperand {
  enum class Kind : uint8_t {
    kRegister,
    kInteger,
    kFloat32,
    kFloat64,
    kSymbol,
    kAddress,
    kVector,
    kSpecial,
    kSink,
  };
  Kind kind = Kind::kSink;
  bool negated = false;              // !%p
  bool has_register = false;         // kAddress: base is a register, not a symbol
  uint32_t reg = 0;                  // kRegister, kAddress: index into PtxFunction::registers
  uint64_t value = 0;                // number; kAddress: byte offset; kSymbol: byte offset
  std::string_view symbol;           // kSymbol, kAddress, kSpecial (with its component: "%tid.x")
  std::vector<PtxOperand> elements;  // kVector: {a, b}, (a, b) and a|b
};

struct PtxInstruction {
  int guard = -1;  // predicate register or -1
  bool guard_negated = false;
  bool malformed = false;  // operands that could not be parsed
  uint32_t line = 0;
  uint32_t scope = 0;
  std::string_view opcode;                  // "ld"
  std::vector<std::string_view> modifiers;  // ".global", ".u32"
  std::vector<PtxOperand> operands;

  bool Has(std::string_view modifier) const;
  Type LastType() const;  // kNone if no modifier is a type
  std::string Name() const;
};

struct CallPrototype {
  std::vector<uint64_t> returns;  // bytes of each
  std::vector<uint64_t> parameters;
};

struct Scope {
  uint32_t parent = 0;
  std::map<std::string_view, uint32_t> labels;  // to instruction index
  std::map<std::string_view, std::vector<std::string_view>> branch_targets;
  std::map<std::string_view, CallPrototype> prototypes;
};

struct PtxFunction {
  std::string_view name;
  bool entry = false;
  bool has_body = false;
  bool unified = false;  // .attribute(.unified(…)): the program may ask for its address
  uint32_t line = 0;
  int max_threads = 0;               // .maxntid product, 0 = not given
  uint32_t cluster[3] = {};          // .reqnctapercluster, 0 = not given
  bool needs_cluster = false;        // .explicitcluster
  uint32_t most_cluster_blocks = 0;  // .maxclusterrank, 0 = not given
  std::vector<Variable> returns;
  std::vector<Variable> parameters;
  std::vector<Type> registers;
  // Local and call parameter variables of the body, each with its scope.
  std::vector<std::pair<uint32_t, Variable>> locals;
  std::vector<Scope> scopes;
  std::vector<PtxInstruction> body;
};

struct PtxModule {
  int version = 0;  // 90
  int target = 0;   // 75
  std::vector<Variable> variables;
  std::vector<PtxFunction> functions;
};

PtxModule ParsePtx(std::string_view text);  // throws PtxError

}  // namespace softgpu
