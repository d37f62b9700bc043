// Products of small matrices: wmma, mma, ldmatrix and stmatrix. matrix_products.cc lists the shapes
// and types; what only devices after sm_90 have (scaled blocks, elements of 6 bits) is left out.
#include <algorithm>
#include <cstdio>
#include <optional>

#include "softgpu/engine/lower/lower.h"
#include "softgpu/engine/ops/matrix.h"

namespace softgpu {
namespace {

using Kind = PtxOperand::Kind;
using Layout = Fragment::Layout;
using Part = Fragment::Part;

std::optional<MatrixShape> ShapeOf(const PtxInstruction& instruction) {
  for (std::string_view modifier : instruction.modifiers) {
    MatrixShape s;
    std::string text(modifier);
    if (std::sscanf(text.c_str(), ".m%un%uk%u", &s.m, &s.n, &s.k) == 3) return s;
  }
  return std::nullopt;
}

std::vector<MatrixType> TypesOf(const PtxInstruction& instruction) {
  static constexpr std::pair<std::string_view, MatrixType> kTypes[] = {
      {".b1", MatrixType::kB1},     {".bf16", MatrixType::kBF16}, {".e4m3", MatrixType::kE4m3},
      {".e5m2", MatrixType::kE5m2}, {".f16", MatrixType::kF16},   {".f32", MatrixType::kF32},
      {".f64", MatrixType::kF64},   {".s32", MatrixType::kS32},   {".s4", MatrixType::kS4},
      {".s8", MatrixType::kS8},     {".tf32", MatrixType::kTF32}, {".u4", MatrixType::kU4},
      {".u8", MatrixType::kU8}};
  std::vector<MatrixType> types;
  for (std::string_view modifier : instruction.modifiers) {
    for (const auto& [name, type] : kTypes) {
      if (modifier == name) types.push_back(type);
    }
  }
  return types;
}

Fragment Describe(const MatrixShape& shape, Part part, MatrixType type) {
  Fragment f;
  f.part = part;
  f.type = type;
  f.rows = part == Part::kB ? shape.k : shape.m;
  f.columns = part == Part::kA ? shape.k : shape.n;
  return f;
}

// Of sparse products a has half of the elements, of independent ones each has its own rows.
void Arrange(MatrixSite& site, const PtxInstruction& instruction, Layout layout) {
  bool first = true;
  for (Fragment* f : {&site.a, &site.b, &site.c, &site.d}) {
    f->layout = layout;
    f->rows *= site.products;
  }
  for (std::string_view modifier : instruction.modifiers) {
    if (modifier != ".row" && modifier != ".col") continue;
    (first ? site.a : site.b).by_columns = modifier == ".col";
    first = false;
  }
  if (site.sparse) site.a.columns /= 2;
}

std::vector<PtxOperand> Elements(const PtxOperand& operand) {
  return operand.kind == Kind::kVector ? operand.elements : std::vector<PtxOperand>{operand};
}

}  // namespace

void Lowering::FillFragment(Fragment& fragment, const PtxOperand& operand, bool written) {
  char letter = fragment.type == MatrixType::kF64 ? 'd' : 'i';
  for (const PtxOperand& element : Elements(operand)) {
    fragment.registers.push_back(written ? Destination(element, letter) : Source(element, letter));
  }
  size_t room = fragment.registers.size() * fragment.ElementsOfRegister();
  bool repeats = fragment.layout == Layout::kOwn && room % fragment.Elements() == 0;
  if (room == 0 || (room != fragment.Elements() && !repeats)) Reject("fragment");
}

// An address that every space has: shared memory by way of its generic address.
OperandOffset Lowering::GenericAddress(const PtxInstruction& instruction, const PtxOperand& address,
                                       int64_t* offset) {
  PtxInstruction generic = instruction;
  auto is_shared = [](std::string_view m) { return m.substr(0, 7) == ".shared"; };
  generic.modifiers.erase(
      std::remove_if(generic.modifiers.begin(), generic.modifiers.end(), is_shared),
      generic.modifiers.end());
  AccessTarget target = FindTarget(generic, address, 1);
  if (!target.place.empty()) Reject("matrix in local memory");
  *offset = target.offset;
  if (generic.modifiers.size() == instruction.modifiers.size()) return target.address;
  OperandOffset to = Temporary('l');
  Instruction& convert = Emit(Need("cvta.shared"));
  convert.op[0] = to;
  convert.op[1] = target.address;
  return to;
}

// wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {...}, [p], stride and wmma.store.d
void Lowering::LowerMatrixAccess(const PtxInstruction& instruction) {
  bool load = instruction.Has(".load");
  std::optional<MatrixShape> shape = ShapeOf(instruction);
  std::vector<MatrixType> types = TypesOf(instruction);
  NeedOperands(instruction, 2);
  if (!shape || types.size() != 1) Reject();
  auto& site = *out_.matrix_sites.emplace_back(std::make_shared<MatrixSite>());
  Part part = instruction.Has(".a") ? Part::kA : instruction.Has(".b") ? Part::kB : Part::kC;
  bool known = part == Part::kC ? IsShapeOf("wmma", *shape) && IsSum(types[0])
                                : load && IsProduct("wmma", *shape, types[0]);
  if (!known) Reject();
  site.d = Describe(*shape, part, types[0]);
  site.d.by_columns = instruction.Has(".col");
  int64_t offset = 0;
  OperandOffset address = GenericAddress(instruction, instruction.operands[load ? 1 : 0], &offset);
  OperandOffset step = instruction.operands.size() > 2
                           ? Source(instruction.operands[2], 'i')
                           : Constant(site.d.by_columns ? site.d.rows : site.d.columns, 'i');
  FillFragment(site.d, instruction.operands[load ? 0 : 1], load);
  OperandOffset room = Temporary('l');
  Instruction& access = Emit(Need(load ? "wmma.load" : "wmma.store"));
  access.op[1] = step;
  access.op[4] = address;
  access.op[5] = room;
  access.imm = offset;
  access.data = &site;
}

// mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 d, a, b, c, mma.sp with metadata and selector
// behind c, and wmma.mma, where two types are those of d and c.
void Lowering::LowerMatrixProduct(const PtxInstruction& instruction) {
  if (instruction.Has(".load") || instruction.Has(".store")) return LowerMatrixAccess(instruction);
  std::optional<MatrixShape> shape = ShapeOf(instruction);
  std::vector<MatrixType> types = TypesOf(instruction);
  if (types.size() == 2) types = {types[0], MatrixType::kF16, MatrixType::kF16, types[1]};
  if (!shape || types.size() != 4) Reject();
  auto& site = *out_.matrix_sites.emplace_back(std::make_shared<MatrixSite>());
  site.sparse = instruction.Has(".sp") || instruction.Has(".sp::ordered_metadata");
  std::string kind = std::string(instruction.opcode) + (site.sparse ? ".sp" : "");
  for (size_t i : {1, 2}) {
    if (!IsProduct(kind, *shape, types[i])) Reject();
  }
  if (!IsSum(types[0]) || !IsSum(types[3])) Reject();
  if (instruction.operands.size() != (site.sparse ? 6 : 4)) Reject("operands");
  for (std::string_view rounding : {".rm", ".rp", ".rz"}) {
    if (instruction.Has(rounding)) Reject("only to nearest");
  }
  site.d = Describe(*shape, Part::kC, types[0]);
  site.a = Describe(*shape, Part::kA, types[1]);
  site.b = Describe(*shape, Part::kB, types[2]);
  site.c = Describe(*shape, Part::kC, types[3]);
  site.clamps = instruction.Has(".satfinite");
  site.exclusive = instruction.Has(".xor");
  bool quads = kind == "mma" && shape->m == 8 && types[1] == MatrixType::kF16;
  if (quads) site.products = 4;
  Arrange(site, instruction,
          kind == "wmma" ? Layout::kOwn
          : quads        ? Layout::kQuads
                         : Layout::kGroups);
  if (site.sparse) ReadMetadata(site, instruction);
  Fragment* fragments[] = {&site.d, &site.a, &site.b, &site.c};
  for (size_t i = 4; i-- > 0;) FillFragment(*fragments[i], instruction.operands[i], i == 0);
  Emit(Need("mma")).data = &site;
}

// The selector says which of each group's four lanes have the metadata: as many lanes as the rows
// need, from a multiple of that number on.
void Lowering::ReadMetadata(MatrixSite& site, const PtxInstruction& instruction) {
  site.metadata = Source(instruction.operands[4], 'i');
  const PtxOperand& selector = instruction.operands[5];
  uint32_t bits = BitsOf(site.a.type);
  uint32_t lanes = bits == 32 ? site.b.rows / 8 : bits == 4 ? site.b.rows / 32 : site.b.rows / 16;
  if (selector.kind != Kind::kInteger || selector.value >= 4 / lanes) Reject("sparsity selector");
  site.first_lane = static_cast<uint32_t>(selector.value) * lanes;
}

// ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {a, b, c, d}, [p], and stmatrix
void Lowering::LowerMatrixRows(const PtxInstruction& instruction) {
  NeedOperands(instruction, 2);
  bool load = instruction.opcode == "ldmatrix";
  if (!instruction.Has(".m8n8") || !instruction.Has(".b16")) Reject();
  const std::vector<PtxOperand> values = Elements(instruction.operands[load ? 0 : 1]);
  if (values.size() != 1 && values.size() != 2 && values.size() != 4) Reject();
  int64_t offset = 0;
  OperandOffset op[7] = {};
  op[4] = GenericAddress(instruction, instruction.operands[load ? 1 : 0], &offset);
  for (size_t i = 0; i < values.size(); ++i) {
    op[i] = load ? Destination(values[i], 'i') : Source(values[i], 'i');
  }
  std::string key(instruction.opcode);
  Instruction& move = Emit(Need(key + (instruction.Has(".trans") ? ".trans" : "")));
  std::copy(std::begin(op), std::end(op), move.op);
  move.imm = offset;
  move.extra = static_cast<uint32_t>(values.size());
}

}  // namespace softgpu
