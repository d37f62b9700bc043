// Recursive-descent parser of PTX modules; parser.cc reads modules and declarations, parser_body.cc
// function bodies.
#pragma once

#include <map>
#include <string_view>
#include <vector>

#include "softgpu/engine/ptx/lexer.h"
#include "softgpu/engine/ptx/ptx.h"

namespace softgpu {

class Parser {
 public:
  explicit Parser(std::string_view text) : tokens_(Tokenize(text)) {}
  PtxModule Run();

 private:
  // Limits on what untrusted text may ask for.
  static constexpr uint64_t kMaxVariableBytes = uint64_t{1} << 32;
  static constexpr size_t kMaxRegisters = 1 << 16;  // per function
  static constexpr size_t kMaxInstructions = 1 << 20;
  static constexpr size_t kMaxScopes = 1 << 16;

  struct RegisterRange {
    Type type;
    uint32_t first;
    uint32_t count;
  };
  struct Names {
    std::map<std::string_view, uint32_t> registers;
    std::map<std::string_view, RegisterRange> ranges;
  };

  // parser.cc
  const Token& Peek(size_t ahead = 0) const;
  const Token& Take();
  bool TakeIf(char c);
  bool TakeIf(std::string_view text);
  void Expect(char c);
  [[noreturn]] void Fail(const std::string& what) const;
  std::string_view ExpectName();
  uint64_t ExpectInteger();
  uint64_t ExpectSize(uint64_t limit);
  void SkipLine();
  void SkipBraces();
  void SkipToSemicolon();
  void ParseModuleItem();
  void ParseFunction(bool entry, bool external);
  void ParseUnified(PtxFunction& function);
  void ParseFunctionDirectives(PtxFunction& function);
  std::vector<Variable> ParseParameterList();
  Variable ParseVariable(Space space, bool external);
  void ParseInitializer(Variable& variable);
  Initializer ParseInitializerValue();

  // parser_body.cc
  void ParseBody(PtxFunction& function);
  void ParseStatement();
  void ParseRegisters();
  void ParseLabel();
  CallPrototype ParsePrototype();
  void ParseInstruction();
  PtxOperand ParseOperand();
  PtxOperand ParsePrimary();
  PtxOperand ParseList(char close);
  PtxOperand ParseAddress();
  PtxOperand ParseName();
  uint64_t ParseOffset();
  int64_t FindRegister(std::string_view name) const;
  void AddRegister(std::string_view name, Type type);
  void OpenScope();
  void CloseScope();

  std::vector<Token> tokens_;
  size_t next_ = 0;
  int depth_ = 0;  // of nested operand lists
  PtxModule module_;

  PtxFunction* function_ = nullptr;
  std::vector<Names> names_;           // innermost last
  std::vector<uint32_t> open_scopes_;  // indices into function_->scopes
};

}  // namespace softgpu
