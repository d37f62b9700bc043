#include "softgpu/engine/ptx/parser.h"

#include <algorithm>
#include <array>

namespace softgpu {
namespace {

struct TypeName {
  std::string_view name;
  Type type;
};
constexpr std::array<TypeName, 22> kTypeNames = {{
    {".b128", Type::kB128},     {".b16", Type::kB16},   {".b32", Type::kB32},
    {".b64", Type::kB64},       {".b8", Type::kB8},     {".bf16", Type::kBF16},
    {".bf16x2", Type::kBF16x2}, {".f16", Type::kF16},   {".f16x2", Type::kF16x2},
    {".f32", Type::kF32},       {".f64", Type::kF64},   {".pred", Type::kPred},
    {".s16", Type::kS16},       {".s16x2", Type::kB32}, {".s32", Type::kS32},
    {".s64", Type::kS64},       {".s8", Type::kS8},     {".u16", Type::kU16},
    {".u16x2", Type::kB32},     {".u32", Type::kU32},   {".u64", Type::kU64},
    {".u8", Type::kU8},
}};

std::optional<Space> ParseSpace(std::string_view directive) {
  if (directive == ".global") return Space::kGlobal;
  if (directive == ".const") return Space::kConst;
  if (directive == ".shared") return Space::kShared;
  if (directive == ".local") return Space::kLocal;
  if (directive == ".param") return Space::kParam;
  return std::nullopt;
}

}  // namespace

std::optional<Type> ParseType(std::string_view directive) {
  for (const TypeName& entry : kTypeNames) {
    if (entry.name == directive) return entry.type;
  }
  return std::nullopt;
}

int TypeBytes(Type type) {
  switch (type) {
    case Type::kB16:
    case Type::kU16:
    case Type::kS16:
    case Type::kF16:
    case Type::kBF16:
      return 2;
    case Type::kB32:
    case Type::kU32:
    case Type::kS32:
    case Type::kF32:
    case Type::kF16x2:
    case Type::kBF16x2:
      return 4;
    case Type::kB64:
    case Type::kU64:
    case Type::kS64:
    case Type::kF64:
      return 8;
    case Type::kB128:
      return 16;
    default:
      return 1;
  }
}

bool IsSigned(Type type) { return type >= Type::kS8 && type <= Type::kS64; }
bool IsFloat(Type type) {
  return type == Type::kF16 || type == Type::kBF16 || type == Type::kF32 || type == Type::kF64;
}

bool PtxInstruction::Has(std::string_view modifier) const {
  return std::find(modifiers.begin(), modifiers.end(), modifier) != modifiers.end();
}

Type PtxInstruction::LastType() const {
  for (auto it = modifiers.rbegin(); it != modifiers.rend(); ++it) {
    if (auto type = ParseType(*it)) return *type;
  }
  return Type::kNone;
}

std::string PtxInstruction::Name() const {
  std::string name(opcode);
  for (std::string_view modifier : modifiers) name += modifier;
  return name;
}

const Token& Parser::Peek(size_t ahead) const {
  return tokens_[std::min(next_ + ahead, tokens_.size() - 1)];
}

const Token& Parser::Take() {
  const Token& token = Peek();
  if (token.kind == Token::Kind::kEnd) Fail("unexpected end");
  ++next_;
  return token;
}

bool Parser::TakeIf(char c) {
  if (!Peek().Is(c)) return false;
  ++next_;
  return true;
}

bool Parser::TakeIf(std::string_view text) {
  if (!Peek().Is(text) || Peek().kind == Token::Kind::kEnd) return false;
  ++next_;
  return true;
}

void Parser::Expect(char c) {
  if (!TakeIf(c)) Fail(std::string("expected '") + c + "'");
}

void Parser::Fail(const std::string& what) const {
  throw PtxError(Peek().line, what + " near '" + std::string(Peek().text.substr(0, 80)) + "'");
}

std::string_view Parser::ExpectName() {
  if (Peek().kind != Token::Kind::kIdentifier) Fail("expected a name");
  return Take().text;
}

uint64_t Parser::ExpectInteger() {
  if (Peek().kind != Token::Kind::kInteger) Fail("expected an integer");
  return Take().value;
}

uint64_t Parser::ExpectSize(uint64_t limit) {
  uint64_t value = ExpectInteger();
  if (value > limit) Fail("size out of range");
  return value;
}

void Parser::SkipLine() {
  uint32_t line = Peek().line;
  while (Peek().kind != Token::Kind::kEnd && Peek().line == line) ++next_;
}

void Parser::SkipBraces() {
  while (!Peek().Is('{')) Take();
  int depth = 0;
  do {
    const Token& token = Take();
    depth += token.Is('{') ? 1 : token.Is('}') ? -1 : 0;
  } while (depth > 0);
}

void Parser::SkipToSemicolon() {
  while (!Take().Is(';')) {
  }
}

PtxModule Parser::Run() {
  while (Peek().kind != Token::Kind::kEnd) ParseModuleItem();
  return std::move(module_);
}

void Parser::ParseModuleItem() {
  if (TakeIf(';')) return;
  if (Peek().kind != Token::Kind::kDirective) Fail("expected a directive");
  if (TakeIf(".version")) {
    std::string_view text = Take().text;  // "9.0"
    size_t dot = text.find('.');
    if (dot == std::string_view::npos || dot + 1 >= text.size()) Fail("bad version");
    module_.version = std::atoi(std::string(text.substr(0, dot)).c_str()) * 10 +
                      std::atoi(std::string(text.substr(dot + 1)).c_str());
    return;
  }
  if (TakeIf(".target")) {
    std::string_view name = ExpectName();
    if (name.substr(0, 3) == "sm_") module_.target = std::atoi(std::string(name.substr(3)).c_str());
    while (TakeIf(',')) ExpectName();
    return;
  }
  if (Peek().Is(".address_size")) {
    Take();
    if (ExpectInteger() != 64) Fail("only 64-bit addresses");
    return;
  }
  if (Peek().Is(".file") || Peek().Is(".loc")) return SkipLine();
  if (Peek().Is(".section")) return SkipBraces();
  if (Peek().Is(".pragma") || Peek().Is(".alias")) return SkipToSemicolon();
  bool external = false;
  while (Peek().Is(".visible") || Peek().Is(".extern") || Peek().Is(".weak") ||
         Peek().Is(".common")) {
    external |= Take().text == ".extern";
  }
  if (TakeIf(".entry")) return ParseFunction(true, external);
  if (TakeIf(".func")) return ParseFunction(false, external);
  auto space = ParseSpace(Peek().text);
  if (!space || *space == Space::kParam) Fail("unknown directive");
  Take();
  do {
    module_.variables.push_back(ParseVariable(*space, external));
  } while (false);
  Expect(';');
}

// After the state space: [.align N] [.vN] .type name[dims] [= initialiser].
Variable Parser::ParseVariable(Space space, bool external) {
  Variable variable;
  variable.space = space;
  variable.external = external;
  variable.line = Peek().line;
  uint64_t vector = 1;
  bool aligned = false;
  std::optional<Type> type;
  while (!type) {
    if (TakeIf(".align")) {
      variable.alignment = ExpectSize(4096);
      if (variable.alignment == 0 || (variable.alignment & (variable.alignment - 1))) {
        Fail("alignment is no power of two");
      }
      aligned = true;
    } else if (TakeIf(".ptr")) {
      while (Peek().Is(".global") || Peek().Is(".const") || Peek().Is(".shared") ||
             Peek().Is(".local") || Peek().Is(".param")) {
        Take();
      }
      if (TakeIf(".align")) ExpectInteger();  // of what the pointer points at
      break;
    } else if (Peek().Is(".v2") || Peek().Is(".v4")) {
      vector = Take().text[2] - '0';
    } else if (TakeIf(".attribute")) {
      Expect('(');
      if (!TakeIf(".managed")) Fail("unknown variable attribute");
      variable.managed = true;
      Expect(')');
    } else if (space == Space::kGlobal && (Peek().Is(".texref") || Peek().Is(".surfref"))) {
      variable.reference = Take().text == ".texref" ? Reference::kTexture : Reference::kSurface;
      type = Type::kB64;
    } else if (Peek().kind == Token::Kind::kDirective) {
      type = ParseType(Take().text);
      if (!type) {
        --next_;
        Fail("unknown variable type");
      }
    } else {
      Fail("expected a type");
    }
  }
  if (!type) Fail("expected a type");
  // Kernel parameters write what they point at after the type: .u64 .ptr .global .align 4 name.
  while (Peek().kind == Token::Kind::kDirective) {
    if (Take().text == ".align") ExpectInteger();
  }
  variable.type = *type;
  variable.element_bytes = static_cast<uint64_t>(TypeBytes(*type));
  variable.bytes = variable.element_bytes * vector;
  if (!aligned) variable.alignment = variable.bytes;
  variable.name = ExpectName();
  if (variable.reference != Reference::kNone && !Peek().Is(';')) {
    Fail("arrays and initial states of references are not supported");
  }
  bool unsized = false;
  while (TakeIf('[')) {
    uint64_t count = 0;
    if (!Peek().Is(']')) count = ExpectSize(kMaxVariableBytes);
    unsized |= count == 0;
    variable.bytes *= count;
    if (variable.bytes > kMaxVariableBytes) Fail("variable too large");
    Expect(']');
  }
  if (TakeIf('=')) ParseInitializer(variable);
  if (unsized && !variable.initializers.empty()) {
    variable.bytes = variable.initializers.size() * variable.element_bytes;
  }
  return variable;
}

void Parser::ParseInitializer(Variable& variable) {
  if (!TakeIf('{')) {
    variable.initializers.push_back(ParseInitializerValue());
    return;
  }
  // Nested braces (rows of an array) are flattened; nvcc writes every row in full.
  int depth = 1;
  while (depth > 0) {
    if (TakeIf('{')) {
      ++depth;
    } else if (TakeIf('}')) {
      --depth;
    } else if (!TakeIf(',')) {
      variable.initializers.push_back(ParseInitializerValue());
    }
  }
}

Initializer Parser::ParseInitializerValue() {
  Initializer value;
  value.line = Peek().line;
  bool negative = TakeIf('-');
  const Token& token = Take();
  switch (token.kind) {
    case Token::Kind::kInteger:
      value.bits = negative ? uint64_t{0} - token.value : token.value;
      if (Peek().Is('(')) Fail("byte masks of addresses are not supported");
      return value;
    case Token::Kind::kFloat32:
      value.is_float32 = true;
      value.bits = token.value;
      return value;
    case Token::Kind::kFloat64:
      value.is_float64 = true;
      value.bits = token.value;
      return value;
    case Token::Kind::kIdentifier:
      value.symbol = token.text;
      if (token.text == "generic" && TakeIf('(')) {
        value.symbol = ExpectName();
        Expect(')');
      }
      if (Peek().Is('+') || Peek().Is('-')) value.bits = ParseOffset();
      return value;
    default:
      --next_;
      Fail("bad initialiser");
  }
}

std::vector<Variable> Parser::ParseParameterList() {
  std::vector<Variable> list;
  if (!TakeIf('(')) return list;
  while (!TakeIf(')')) {
    if (!list.empty()) Expect(',');
    if (!TakeIf(".param") && !TakeIf(".reg")) Fail("expected .param");
    list.push_back(ParseVariable(Space::kParam, false));
    if (list.size() > 4096) Fail("too many parameters");
  }
  return list;
}

void Parser::ParseFunction(bool entry, bool external) {
  PtxFunction function;
  function.entry = entry;
  function.line = Peek().line;
  if (!entry && TakeIf(".attribute")) ParseUnified(function);
  if (!entry) function.returns = ParseParameterList();
  function.name = ExpectName();
  function.parameters = ParseParameterList();
  ParseFunctionDirectives(function);
  if (!TakeIf(';')) ParseBody(function);
  module_.functions.push_back(std::move(function));
}

// (.unified(A, B)): the two numbers name the function in all modules, which nobody asks for here.
void Parser::ParseUnified(PtxFunction& function) {
  Expect('(');
  if (!TakeIf(".unified")) Fail("unknown function attribute");
  Expect('(');
  ExpectInteger();
  Expect(',');
  ExpectInteger();
  Expect(')');
  Expect(')');
  function.unified = true;
}

void Parser::ParseFunctionDirectives(PtxFunction& function) {
  while (Peek().kind == Token::Kind::kDirective) {
    const std::string_view name = Take().text;
    std::vector<uint32_t> values;
    while (Peek().kind == Token::Kind::kInteger || Peek().kind == Token::Kind::kString) {
      if (Peek().kind == Token::Kind::kInteger)
        values.push_back(static_cast<uint32_t>(ExpectSize(1024)));
      else
        Take();
      TakeIf(',');
    }
    if (name == ".explicitcluster") function.needs_cluster = true;
    if (name == ".maxclusterrank" && !values.empty()) function.most_cluster_blocks = values[0];
    if (name == ".reqnctapercluster") {
      values.resize(3, 1);
      std::copy_n(values.begin(), 3, function.cluster);
    }
    if (name == ".maxntid" || name == ".reqntid") {
      uint64_t product = 1;
      for (uint32_t value : values) product = std::min<uint64_t>(product * value, 1024);
      function.max_threads = static_cast<int>(product);
    }
    if (Peek().Is(';') && Peek(1).kind == Token::Kind::kDirective) Take();  // after .pragma
  }
}

PtxModule ParsePtx(std::string_view text) { return Parser(text).Run(); }

}  // namespace softgpu
