// The places in PTX where probes can be, found in its tokens.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "probe/probe.h"
#include "softgpu/engine/ptx/lexer.h"
#include "softgpu/engine/ptx/ptx.h"

namespace longwire::probe {

// A statement before which a probe goes.
struct Site {
  Point point = Point::kKernelEntry;
  size_t begin = 0;     // offset of the statement, with its guard
  std::string skip;     // a guard that is true when the statement is not executed; or empty
  std::string address;  // memory_access: the operand without its brackets
  uint32_t bytes = 0;
  uint32_t access = 0;
  uint32_t line = 0;
};

class Sites {
 public:
  explicit Sites(std::string_view text) : text_(text), tokens_(softgpu::Tokenize(text)) {}

  // Of a function with a body, in order; those of `wanted` points only. Throws PtxError.
  std::vector<Site> Of(const softgpu::PtxFunction& function, const std::vector<Point>& wanted);
  // The offset behind the declarations at the body's begin. Throws PtxError.
  size_t FirstStatementOf(const softgpu::PtxFunction& function) const {
    return OffsetOf(tokens_[FirstStatement(function)].text);
  }
  // Behind the line that ends the head of the module (.version, .target, .address_size).
  size_t EndOfHead() const;

 private:
  size_t OffsetOf(std::string_view view) const {
    return static_cast<size_t>(view.data() - text_.data());
  }
  size_t TokenAt(size_t offset) const;
  size_t FirstStatement(const softgpu::PtxFunction& function) const;
  Site SiteOf(size_t token, Point point, uint32_t line) const;

  std::string_view text_;
  std::vector<softgpu::Token> tokens_;
};

}  // namespace longwire::probe
