// Textures and surfaces. The object is a register, or a reference that the module names.
#include <algorithm>
#include <memory>

#include "softgpu/engine/lower.h"
#include "softgpu/engine/texture_ops.h"

namespace softgpu {
namespace {

using Kind = PtxOperand::Kind;

std::vector<PtxOperand> Elements(const PtxOperand& operand) {
  return operand.kind == Kind::kVector ? operand.elements : std::vector<PtxOperand>{operand};
}

Bounds BoundsOf(const PtxInstruction& instruction) {
  return instruction.Has(".clamp")  ? Bounds::kClamp
         : instruction.Has(".zero") ? Bounds::kZero
                                    : Bounds::kTrap;
}

}  // namespace

// [object, {layer, x, y, z}]: the geometry says how many there are of which.
TextureSite& Lowering::LowerSite(const PtxInstruction& instruction, const PtxOperand& address,
                                 bool whole) {
  auto& site = *out_.texture_sites.emplace_back(std::make_shared<TextureSite>());
  const bool layered = instruction.Has(".a1d") || instruction.Has(".a2d");
  site.layered = layered;
  if (instruction.Has(".1d") || instruction.Has(".a1d")) {
    site.dims = 1;
  } else if (instruction.Has(".2d") || instruction.Has(".a2d")) {
    site.dims = 2;
  } else if (instruction.Has(".3d")) {
    site.dims = 3;
  } else {
    Reject("geometry");
  }
  site.whole_coordinates = whole;
  if (address.kind != Kind::kAddress || address.elements.size() != 1) Reject("a texture's address");
  site.handle = SourceHandle(address);
  const std::vector<PtxOperand> list = Elements(address.elements[0]);
  const size_t first = layered ? 1 : 0;
  if (list.size() < first + static_cast<size_t>(site.dims)) Reject("coordinates");
  if (layered) site.layer = Source(list[0], 'i');
  for (int i = 0; i < site.dims; ++i) {
    site.coordinates[i] = Source(list[first + static_cast<size_t>(i)], whole ? 'i' : 'f');
  }
  return site;
}

OperandOffset Lowering::SourceHandle(const PtxOperand& address) {
  PtxOperand handle;
  handle.kind = address.has_register ? Kind::kRegister : Kind::kSymbol;
  handle.reg = address.reg;
  handle.symbol = address.symbol;
  return Source(handle, 'l');
}

// tex{.level}.geometry.v4.type.coordinates {a, b, c, d}, [object, {coordinates}]{, level}
void Lowering::LowerTexture(const PtxInstruction& instruction) {
  NeedOperands(instruction, 2);
  const std::vector<PtxOperand> results = Elements(instruction.operands[0]);
  const bool level = instruction.Has(".level");
  if (results.size() != 4 || instruction.Has(".grad") || instruction.modifiers.size() < 2 ||
      instruction.operands.size() != (level ? 3u : 2u)) {
    Reject();
  }
  const auto result = ParseType(*(instruction.modifiers.rbegin() + 1));
  const Type coordinates = instruction.LastType();
  if (!result || TypeBytes(*result) != 4 || TypeBytes(coordinates) != 4) Reject();
  TextureSite& site = LowerSite(instruction, instruction.operands[1], coordinates != Type::kF32);
  site.has_level = level;
  if (level) {
    const bool whole = site.whole_coordinates;
    if (whole) Reject("levels of texels");
    site.level = Source(instruction.operands[2], 'f');
  }
  OperandOffset to[4];
  for (size_t i = 0; i < 4; ++i) to[i] = Destination(results[i], LetterOf(*result));
  Instruction& out = Emit(SampleTexture);
  std::copy(std::begin(to), std::end(to), out.op);
  out.data = &site;
}

// suld.b.geometry{.vN}.type{.bounds} a, [object, {coordinates}], and sust.b with the sides changed
void Lowering::LowerSurface(const PtxInstruction& instruction) {
  NeedOperands(instruction, 2);
  const bool load = instruction.opcode == "suld";
  const Type type = instruction.LastType();
  if (!instruction.Has(".b") || type == Type::kNone) Reject();
  const std::vector<PtxOperand> values = Elements(instruction.operands[load ? 0 : 1]);
  if (values.size() > 4) Reject("more than 4 elements");
  TextureSite& site = LowerSite(instruction, instruction.operands[load ? 1 : 0], true);
  site.bounds = BoundsOf(instruction);
  site.element_bytes = static_cast<uint32_t>(TypeBytes(type));
  site.elements = static_cast<uint32_t>(values.size());
  const char letter = site.element_bytes == 8 ? 'l' : 'i';
  OperandOffset op[4] = {};
  for (size_t i = 0; i < values.size(); ++i) {
    op[i] = load ? Destination(values[i], letter) : Source(values[i], letter);
  }
  Instruction& out = Emit(load ? LoadSurface : StoreSurface);
  std::copy(std::begin(op), std::end(op), out.op);
  out.data = &site;
}

// txq.width.b32 a, [object], and suq
void Lowering::LowerTextureQuery(const PtxInstruction& instruction) {
  NeedOperands(instruction, 2);
  const int what = instruction.Has(".width")    ? 0
                   : instruction.Has(".height") ? 1
                   : instruction.Has(".depth")  ? 2
                                                : -1;
  if (what < 0 || instruction.Has(".level")) Reject();
  auto& site = *out_.texture_sites.emplace_back(std::make_shared<TextureSite>());
  site.handle = SourceHandle(instruction.operands[1]);
  const OperandOffset to = Destination(instruction.operands[0], 'i');
  Instruction& out = Emit(QueryTexture);
  out.op[0] = to;
  out.extra = static_cast<uint32_t>(what);
  out.data = &site;
}

}  // namespace softgpu
