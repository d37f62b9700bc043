#include "probe/sites.h"

#include <algorithm>

#include "probe/include/longwire/probe.h"

namespace longwire::probe {

namespace {

using softgpu::PtxError;
using softgpu::PtxInstruction;
using softgpu::Token;

bool Wants(const std::vector<Point>& wanted, Point point) {
  return std::ranges::find(wanted, point) != wanted.end();
}

uint32_t AccessOf(std::string_view opcode) {
  if (opcode == "ld" || opcode == "ldu") return LW_LOAD;
  if (opcode == "st") return LW_STORE;
  return opcode == "atom" || opcode == "red" ? LW_ATOMIC : 0;
}

// Global memory, also what is accessed by a generic address.
bool IsGlobal(const PtxInstruction& instruction) {
  constexpr std::string_view kOthers[] = {".shared", ".local", ".param", ".const"};
  return std::ranges::none_of(instruction.modifiers, [&](std::string_view modifier) {
    return std::ranges::any_of(kOthers,
                               [&](std::string_view other) { return modifier.starts_with(other); });
  });
}

uint32_t BytesOf(const PtxInstruction& instruction) {
  const int of_one = softgpu::TypeBytes(instruction.LastType());
  const uint32_t count = instruction.Has(".v8")   ? 8
                         : instruction.Has(".v4") ? 4
                         : instruction.Has(".v2") ? 2
                                                  : 1;
  return static_cast<uint32_t>(of_one) * count;
}

}  // namespace

size_t Sites::TokenAt(size_t offset) const {
  const auto found = std::ranges::lower_bound(tokens_, offset, {}, [this](const Token& token) {
    return token.kind == Token::Kind::kEnd ? text_.size() : OffsetOf(token.text);
  });
  return static_cast<size_t>(found - tokens_.begin());
}

size_t Sites::EndOfHead() const {
  uint32_t line = 1;
  for (size_t i = 0; i + 1 < tokens_.size(); ++i) {
    const Token& token = tokens_[i];
    line = token.line;
    if (token.Is(".address_size") && tokens_[i + 1].value == 64) {
      return OffsetOf(tokens_[i + 1].text) + tokens_[i + 1].text.size();
    }
    if (token.Is('{') || token.Is(".entry") || token.Is(".func")) break;
  }
  throw PtxError(line, "it does not say .address_size 64, and probes need addresses of 64 bits");
}

// Behind declarations at the body's begin.
size_t Sites::FirstStatement(const softgpu::PtxFunction& function) const {
  size_t at = TokenAt(OffsetOf(function.name));
  int depth = 0;
  for (; tokens_[at].kind != Token::Kind::kEnd; ++at) {
    if (tokens_[at].Is('(')) ++depth;
    if (tokens_[at].Is(')')) --depth;
    if (depth == 0 && tokens_[at].Is('{')) break;
  }
  ++at;
  while (at < tokens_.size() && tokens_[at].kind == Token::Kind::kDirective) {
    const bool of_line = tokens_[at].Is(".loc") || tokens_[at].Is(".file");
    const uint32_t line = tokens_[at].line;
    if (of_line) {
      while (tokens_[at].kind != Token::Kind::kEnd && tokens_[at].line == line) ++at;
    } else {
      while (tokens_[at].kind != Token::Kind::kEnd && !tokens_[at].Is(';')) ++at;
      ++at;
    }
  }
  if (at >= tokens_.size() || tokens_[at].kind == Token::Kind::kEnd) {
    throw PtxError(function.line, "the function has no end");
  }
  return at;
}

Site Sites::SiteOf(size_t token, Point point, uint32_t line) const {
  Site site;
  site.point = point;
  site.line = line;
  site.begin = OffsetOf(tokens_[token].text);
  const auto before = [&](size_t count) {
    return token >= count ? &tokens_[token - count] : nullptr;
  };
  const bool plain = before(2) != nullptr && before(2)->Is('@');
  const bool negated = before(3) != nullptr && before(2)->Is('!') && before(3)->Is('@');
  if (plain || negated) {
    site.begin = OffsetOf((negated ? before(3) : before(2))->text);
    site.skip = (negated ? "@" : "@!") + std::string(before(1)->text);
  }
  size_t last = token;
  while (tokens_[last].kind != Token::Kind::kEnd && !tokens_[last].Is(';')) ++last;
  if (tokens_[last].kind == Token::Kind::kEnd) throw PtxError(line, "the statement has no end");
  if (point != Point::kMemoryAccess) return site;
  size_t open = token;
  while (open < last && !tokens_[open].Is('[')) ++open;
  size_t close = open;
  while (close < last && !tokens_[close].Is(']')) ++close;
  if (close == last) throw PtxError(line, "the access has no address in brackets");
  const size_t from = OffsetOf(tokens_[open].text) + 1;
  site.address = std::string(text_.substr(from, OffsetOf(tokens_[close].text) - from));
  return site;
}

std::vector<Site> Sites::Of(const softgpu::PtxFunction& function,
                            const std::vector<Point>& wanted) {
  std::vector<Site> sites;
  const auto entry = function.entry ? std::pair(Point::kKernelEntry, Point::kBlockEnter)
                                    : std::pair(Point::kFunctionEntry, Point::kFunctionEntry);
  const auto exit = function.entry ? std::pair(Point::kKernelExit, Point::kBlockExit)
                                   : std::pair(Point::kFunctionExit, Point::kFunctionExit);
  const auto add_pair = [&](const std::pair<Point, Point>& points, Site site) {
    for (const Point point : {points.first, points.second}) {
      if (!Wants(wanted, point)) continue;
      site.point = point;
      sites.push_back(site);
      if (points.first == points.second) break;
    }
  };
  const size_t first = FirstStatement(function);
  Site begin;
  begin.begin = OffsetOf(tokens_[first].text);
  begin.line = tokens_[first].line;
  add_pair(entry, begin);
  for (const PtxInstruction& instruction : function.body) {
    const std::string_view opcode = instruction.opcode;
    const bool ends = opcode == "ret" || (opcode == "exit" && function.entry);
    const bool fences = opcode == "membar" || opcode == "fence";
    const uint32_t access = AccessOf(opcode);
    const bool accesses = access != 0 && Wants(wanted, Point::kMemoryAccess) &&
                          IsGlobal(instruction) && !instruction.malformed;
    if (!ends && !fences && !accesses) continue;
    const size_t token = TokenAt(OffsetOf(opcode));
    Site site = SiteOf(token, accesses ? Point::kMemoryAccess : Point::kFence, instruction.line);
    if (ends) {
      add_pair(exit, site);
    } else if (accesses) {
      site.bytes = BytesOf(instruction);
      site.access = access;
      sites.push_back(site);
    } else if (Wants(wanted, Point::kFence)) {
      sites.push_back(site);
    }
  }
  return sites;
}

}  // namespace longwire::probe
