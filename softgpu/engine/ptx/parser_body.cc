#include <algorithm>

#include "softgpu/engine/ptx/parser.h"
#include "wire/guards.h"

namespace softgpu {

void Parser::OpenScope() {
  if (function_->scopes.size() >= kMaxScopes || names_.size() > 64) Fail("too many scopes");
  Scope scope;
  scope.parent = open_scopes_.empty() ? 0 : open_scopes_.back();
  open_scopes_.push_back(static_cast<uint32_t>(function_->scopes.size()));
  function_->scopes.push_back(std::move(scope));
  names_.emplace_back();
}

void Parser::CloseScope() {
  open_scopes_.pop_back();
  names_.pop_back();
}

void Parser::ParseBody(PtxFunction& function) {
  function_ = &function;
  function.has_body = true;
  names_.clear();
  open_scopes_.clear();
  Expect('{');
  OpenScope();
  while (!open_scopes_.empty()) {
    if (TakeIf('{')) {
      OpenScope();
    } else if (TakeIf('}')) {
      CloseScope();
    } else {
      ParseStatement();
    }
    if (function.body.size() > kMaxInstructions) Fail("function too long");
  }
  function_ = nullptr;
}

void Parser::ParseStatement() {
  if (TakeIf(';')) return;
  if (Peek().kind == Token::Kind::kDirective) {
    if (TakeIf(".reg")) return ParseRegisters();
    if (Peek().Is(".loc") || Peek().Is(".file")) return SkipLine();
    if (Peek().Is(".pragma")) return SkipToSemicolon();
    if (Peek().Is(".section")) return SkipBraces();
    if (Peek().Is(".shared") || Peek().Is(".global") || Peek().Is(".const")) {
      Space space = Peek().Is(".shared")   ? Space::kShared
                    : Peek().Is(".global") ? Space::kGlobal
                                           : Space::kConst;
      Take();
      module_.variables.push_back(ParseVariable(space, false));
      return Expect(';');
    }
    bool local = Peek().Is(".local");
    if (!local && !Peek().Is(".param")) Fail("unknown directive");
    Take();
    Variable variable = ParseVariable(local ? Space::kLocal : Space::kParam, false);
    function_->locals.emplace_back(open_scopes_.back(), std::move(variable));
    return Expect(';');
  }
  if (Peek().kind == Token::Kind::kIdentifier && Peek(1).Is(':')) return ParseLabel();
  ParseInstruction();
}

void Parser::AddRegister(std::string_view name, Type type) {
  if (function_->registers.size() >= kMaxRegisters) Fail("too many registers");
  names_.back().registers[name] = static_cast<uint32_t>(function_->registers.size());
  function_->registers.push_back(type);
}

// .reg .b32 %r<12>; or .reg .pred p, q;
void Parser::ParseRegisters() {
  if (Peek().Is(".v2") || Peek().Is(".v4")) Fail("vector registers are not supported");
  auto type = ParseType(Peek().text);
  if (!type) Fail("unknown register type");
  Take();
  do {
    std::string_view name = ExpectName();
    if (TakeIf('<')) {
      uint64_t count = ExpectSize(kMaxRegisters);
      Expect('>');
      auto first = static_cast<uint32_t>(function_->registers.size());
      if (first + count > kMaxRegisters) Fail("too many registers");
      names_.back().ranges[name] = {*type, first, static_cast<uint32_t>(count)};
      function_->registers.insert(function_->registers.end(), count, *type);
    } else {
      AddRegister(name, *type);
    }
  } while (TakeIf(','));
  Expect(';');
}

void Parser::ParseLabel() {
  std::string_view name = ExpectName();
  Expect(':');
  Scope& scope = function_->scopes[open_scopes_.back()];
  if (TakeIf(".branchtargets") || TakeIf(".calltargets")) {
    std::vector<std::string_view>& targets = scope.branch_targets[name];
    do {
      targets.push_back(ExpectName());
    } while (TakeIf(','));
    Expect(';');
  } else if (TakeIf(".callprototype")) {
    scope.prototypes[name] = ParsePrototype();
  } else if (!scope.labels.emplace(name, function_->body.size()).second) {
    Fail("label defined twice");
  }
}

CallPrototype Parser::ParsePrototype() {
  CallPrototype prototype;
  for (const Variable& v : ParseParameterList()) prototype.returns.push_back(v.bytes);
  ExpectName();  // "_"
  for (const Variable& v : ParseParameterList()) prototype.parameters.push_back(v.bytes);
  SkipToSemicolon();
  return prototype;
}

void Parser::ParseInstruction() {
  PtxInstruction instruction;
  instruction.line = Peek().line;
  instruction.scope = open_scopes_.back();
  if (TakeIf('@')) {
    instruction.guard_negated = TakeIf('!');
    int64_t reg = FindRegister(ExpectName());
    if (reg < 0 || function_->registers[reg] != Type::kPred) Fail("guard is no predicate");
    instruction.guard = static_cast<int>(reg);
  }
  instruction.opcode = ExpectName();
  while (Peek().kind == Token::Kind::kDirective) instruction.modifiers.push_back(Take().text);
  size_t start = next_;
  try {
    if (!Peek().Is(';')) {
      do {
        instruction.operands.push_back(ParseOperand());
        if (instruction.operands.size() > 64) Fail("too many operands");
      } while (TakeIf(','));
    }
    Expect(';');
  } catch (const PtxError&) {
    // Operands of a form that is not known here fail the function, not the module.
    instruction.malformed = true;
    depth_ = 0;
    next_ = start;
    SkipToSemicolon();
  }
  function_->body.push_back(std::move(instruction));
}

// A primary, or two joined by '|' (setp's and shfl's double destination).
PtxOperand Parser::ParseOperand() {
  PtxOperand first = ParsePrimary();
  if (!TakeIf('|')) return first;
  PtxOperand pair;
  pair.kind = PtxOperand::Kind::kVector;
  pair.elements.push_back(std::move(first));
  pair.elements.push_back(ParsePrimary());
  return pair;
}

PtxOperand Parser::ParsePrimary() {
  PtxOperand operand;
  if (TakeIf('{')) return ParseList('}');
  if (TakeIf('(')) return ParseList(')');
  if (TakeIf('[')) return ParseAddress();
  if (TakeIf('!')) {
    operand = ParseName();
    operand.negated = true;
    return operand;
  }
  bool negative = TakeIf('-');
  if (!negative) TakeIf('+');
  const Token& token = Peek();
  switch (token.kind) {
    case Token::Kind::kInteger:
      operand.kind = PtxOperand::Kind::kInteger;
      operand.value = negative ? uint64_t{0} - token.value : token.value;
      break;
    case Token::Kind::kFloat32:
      operand.kind = PtxOperand::Kind::kFloat32;
      operand.value = token.value ^ (negative ? uint64_t{1} << 31 : 0);
      break;
    case Token::Kind::kFloat64:
      operand.kind = PtxOperand::Kind::kFloat64;
      operand.value = token.value ^ (negative ? uint64_t{1} << 63 : 0);
      break;
    default:
      return ParseName();
  }
  Take();
  return operand;
}

PtxOperand Parser::ParseList(char close) {
  PtxOperand list;
  list.kind = PtxOperand::Kind::kVector;
  if (++depth_ > 8) Fail("lists nested too deeply");
  while (!TakeIf(close)) {
    if (!list.elements.empty()) Expect(',');
    list.elements.push_back(ParseOperand());
    if (list.elements.size() > 4096) Fail("list too long");
  }
  --depth_;
  return list;
}

uint64_t Parser::ParseOffset() {
  uint64_t offset = 0;
  while (Peek().Is('+') || Peek().Is('-')) {
    bool negative = Take().Is('-');
    if (TakeIf('-')) negative = !negative;
    uint64_t value = ExpectInteger();
    offset += negative ? uint64_t{0} - value : value;
  }
  return offset;
}

PtxOperand Parser::ParseAddress() {
  PtxOperand address;
  address.kind = PtxOperand::Kind::kAddress;
  if (Peek().kind == Token::Kind::kInteger) {
    address.value = Take().value;
  } else {
    std::string_view name = ExpectName();
    int64_t reg = FindRegister(name);
    address.has_register = reg >= 0;
    if (reg >= 0) {
      address.reg = static_cast<uint32_t>(reg);
    } else {
      address.symbol = name;
    }
  }
  address.value += ParseOffset();
  while (TakeIf(',')) address.elements.push_back(ParseOperand());  // coordinates of a texture
  Expect(']');
  return address;
}

// A register, special register, sink or symbol (which may have an offset).
PtxOperand Parser::ParseName() {
  PtxOperand operand;
  const char* start = Peek().text.data();
  std::string_view name = ExpectName();
  if (name == "_") return operand;
  int64_t reg = FindRegister(name);
  if (reg >= 0) {
    operand.kind = PtxOperand::Kind::kRegister;
    operand.reg = static_cast<uint32_t>(reg);
    return operand;
  }
  operand.symbol = name;
  if (name[0] == '%' || name == "WARP_SZ") {
    operand.kind = PtxOperand::Kind::kSpecial;
    if (Peek().kind == Token::Kind::kDirective && Peek().text.size() == 2) {
      const Token& component = Take();
      operand.symbol = std::string_view(start, component.text.data() + 2 - start);
    }
    return operand;
  }
  operand.kind = PtxOperand::Kind::kSymbol;
  operand.value = ParseOffset();
  return operand;
}

int64_t Parser::FindRegister(std::string_view name) const {
  size_t stem = name.size();
  while (stem > 0 && name[stem - 1] >= '0' && name[stem - 1] <= '9') --stem;
  uint64_t index = 0;
  bool numbered = stem < name.size() && name.size() - stem <= 9;
  if (numbered) index = std::strtoul(std::string(name.substr(stem)).c_str(), nullptr, 10);
  for (auto names = names_.rbegin(); names != names_.rend(); ++names) {
    auto exact = names->registers.find(name);
    if (exact != names->registers.end()) return exact->second;
    if (!numbered) continue;
    auto range = names->ranges.find(name.substr(0, stem));
    if (range == names->ranges.end()) continue;
    if (longwire::wire::kPlantedBug || index < range->second.count) {
      return range->second.first + static_cast<int64_t>(index);
    }
  }
  return -1;
}

}  // namespace softgpu
