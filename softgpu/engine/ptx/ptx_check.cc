#include "softgpu/engine/ptx/ptx_check.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

#include "softgpu/engine/ptx/lexer.h"
#include "softgpu/engine/ptx/special.h"

namespace softgpu {
namespace {

// All three lists are sorted. PTX 9.0.
constexpr auto kOpcodes = std::to_array<std::string_view>({
    "abs",          "activemask",    "add",       "addc",       "alloca",
    "and",          "applypriority", "atom",      "bar",        "barrier",
    "bfe",          "bfi",           "bfind",     "bmsk",       "bra",
    "brev",         "brkpt",         "brx",       "call",       "clusterlaunchcontrol",
    "clz",          "cnot",          "copysign",  "cos",        "cp",
    "createpolicy", "cvt",           "cvta",      "discard",    "div",
    "dp2a",         "dp4a",          "elect",     "ex2",        "exit",
    "fence",        "fma",           "fns",       "getctarank", "griddepcontrol",
    "isspacep",     "istypep",       "ld",        "ldmatrix",   "ldu",
    "lg2",          "lop3",          "mad",       "mad24",      "madc",
    "mapa",         "match",         "max",       "mbarrier",   "membar",
    "min",          "mma",           "mov",       "movmatrix",  "mul",
    "mul24",        "multimem",      "nanosleep", "neg",        "not",
    "or",           "pmevent",       "popc",      "prefetch",   "prefetchu",
    "prmt",         "rcp",           "red",       "redux",      "rem",
    "ret",          "rsqrt",         "sad",       "selp",       "set",
    "setmaxnreg",   "setp",          "shf",       "shfl",       "shl",
    "shr",          "sin",           "slct",      "sqrt",       "st",
    "stackrestore", "stacksave",     "stmatrix",  "sub",        "subc",
    "suld",         "suq",           "sured",     "sust",       "szext",
    "tanh",         "tcgen05",       "tensormap", "testp",      "tex",
    "tld4",         "trap",          "txq",       "vabsdiff",   "vabsdiff2",
    "vabsdiff4",    "vadd",          "vadd2",     "vadd4",      "vavrg2",
    "vavrg4",       "vmad",          "vmax",      "vmax2",      "vmax4",
    "vmin",         "vmin2",         "vmin4",     "vote",       "vset",
    "vset2",        "vset4",         "vshl",      "vshr",       "vsub",
    "vsub2",        "vsub4",         "wgmma",     "wmma",       "xor",
});

// Instructions of few and settled forms: all that can stand in them is known.
constexpr auto kPlain = std::to_array<std::string_view>({
    "abs", "add", "and",  "bfe",  "bfi",   "bfind", "brev",  "clz",  "cnot", "cos",   "div",
    "ex2", "fma", "lg2",  "mad",  "mad24", "max",   "min",   "mov",  "mul",  "mul24", "neg",
    "not", "or",  "popc", "prmt", "rcp",   "rem",   "rsqrt", "sad",  "selp", "set",   "setp",
    "shf", "shl", "shr",  "sin",  "slct",  "sqrt",  "sub",   "tanh", "xor",
});

constexpr auto kModifiers = std::to_array<std::string_view>({
    ".NaN", ".abs", ".and",  ".approx", ".b4e",  ".cc",        ".clamp",    ".ecl",
    ".ecr", ".eq",  ".equ",  ".f32x2",  ".f4e",  ".ftz",       ".full",     ".ge",
    ".geu", ".gt",  ".gtu",  ".hi",     ".hs",   ".l",         ".le",       ".leu",
    ".lo",  ".ls",  ".lt",   ".ltu",    ".nan",  ".ne",        ".neu",      ".noftz",
    ".num", ".oob", ".or",   ".r",      ".rc16", ".rc8",       ".relu",     ".rm",
    ".rn",  ".rp",  ".rz",   ".s8x4",   ".sat",  ".satfinite", ".shiftamt", ".u8x4",
    ".v2",  ".v4",  ".wide", ".wrap",   ".xor",  ".xorsign",
});

// Without their components and numbers.
constexpr auto kSpecials = std::to_array<std::string_view>({
    "%aggr_smem_size",
    "%clock",
    "%clock_hi",
    "%cluster_ctaid",
    "%cluster_ctarank",
    "%cluster_nctaid",
    "%cluster_nctarank",
    "%clusterid",
    "%ctaid",
    "%current_graph_exec",
    "%dynamic_smem_size",
    "%envreg",
    "%globaltimer",
    "%globaltimer_hi",
    "%globaltimer_lo",
    "%gridid",
    "%is_explicit_cluster",
    "%laneid",
    "%lanemask_eq",
    "%lanemask_ge",
    "%lanemask_gt",
    "%lanemask_le",
    "%lanemask_lt",
    "%nclusterid",
    "%nctaid",
    "%nsmid",
    "%ntid",
    "%nwarpid",
    "%pm",
    "%pm0_",
    "%pm1_",
    "%pm2_",
    "%pm3_",
    "%pm4_",
    "%pm5_",
    "%pm6_",
    "%pm7_",
    "%reserved_smem_offset_",
    "%reserved_smem_offset_begin",
    "%reserved_smem_offset_cap",
    "%reserved_smem_offset_end",
    "%smid",
    "%tid",
    "%total_smem_size",
    "%warpid",
});

template <class List>
bool Lists(const List& list, std::string_view name) {
  return std::binary_search(list.begin(), list.end(), name);
}

bool IsSpecial(std::string_view name) {
  if (name == "WARP_SZ" || FindSpecial(name)) return true;
  name = name.substr(0, name.find('.'));
  while (!name.empty() && std::isdigit(static_cast<unsigned char>(name.back())) != 0) {
    name.remove_suffix(1);  // %clock64, %envreg7
  }
  return Lists(kSpecials, name);
}

void CheckOperands(const std::vector<PtxOperand>& operands, uint32_t line) {
  for (const PtxOperand& operand : operands) {
    bool special = operand.kind == PtxOperand::Kind::kSpecial;
    bool address = operand.kind == PtxOperand::Kind::kAddress && operand.symbol.starts_with('%');
    if ((special && !IsSpecial(operand.symbol)) || address) {
      throw PtxError(line, "unknown register " + std::string(operand.symbol));
    }
    CheckOperands(operand.elements, line);
  }
}

}  // namespace

bool StartsAsPtx(std::string_view text) {
  while (!text.empty()) {
    if (text.front() == ' ' || (text.front() >= '\t' && text.front() <= '\r')) {
      text.remove_prefix(1);
    } else if (text.starts_with("//")) {
      text.remove_prefix(std::min(text.find('\n'), text.size()));
    } else if (text.starts_with("/*")) {
      size_t end = text.find("*/", 2);
      if (end == std::string_view::npos) return false;
      text.remove_prefix(end + 2);
    } else {
      break;
    }
  }
  return text.starts_with(".version");
}

void CheckBody(const PtxFunction& function) {
  for (const PtxInstruction& instruction : function.body) {
    if (!Lists(kOpcodes, instruction.opcode)) {
      throw PtxError(instruction.line, "no instruction has the name " + instruction.Name());
    }
    if (Lists(kPlain, instruction.opcode)) {
      for (std::string_view modifier : instruction.modifiers) {
        if (Lists(kModifiers, modifier) || ParseType(modifier)) continue;
        throw PtxError(instruction.line,
                       "unknown modifier " + std::string(modifier) + " in " + instruction.Name());
      }
      if (instruction.malformed) {
        throw PtxError(instruction.line, "operands of " + instruction.Name());
      }
    }
    CheckOperands(instruction.operands, instruction.line);
  }
}

bool IsDeviceRuntimeName(std::string_view name) {
  return name.starts_with("cuda") || name.starts_with("__cuda");
}

}  // namespace softgpu
