// Textures and surfaces. The object is a register, or a reference that the module names.
#include <algorithm>
#include <memory>

#include "softgpu/engine/lower/lower.h"
#include "softgpu/engine/texture/texture_ops.h"

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

struct Geometry {
  std::string_view name;
  int dims;
  bool layered, cube;
};
constexpr Geometry kGeometries[] = {{".1d", 1, false, false}, {".2d", 2, false, false},
                                    {".3d", 3, false, false}, {".a1d", 1, true, false},
                                    {".a2d", 2, true, false}, {".cube", 3, false, true},
                                    {".acube", 3, true, true}};

const Geometry* GeometryOf(const PtxInstruction& instruction) {
  for (const Geometry& geometry : kGeometries) {
    if (instruction.Has(geometry.name)) return &geometry;
  }
  return nullptr;
}

}  // namespace

// [object, {layer, x, y, z}]: the geometry says how many there are of which.
TextureSite& Lowering::LowerSite(const PtxInstruction& instruction, const PtxOperand& address,
                                 bool whole) {
  auto& site = *out_.texture_sites.emplace_back(std::make_shared<TextureSite>());
  const Geometry* geometry = GeometryOf(instruction);
  if (geometry == nullptr) Reject("geometry");
  const bool layered = site.layered = geometry->layered;
  site.dims = geometry->dims;
  site.cube = geometry->cube;
  site.whole_coordinates = whole;
  if (whole && site.cube) Reject("geometry");
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

// {a, b, c, d}{|resident}
Lowering::TexelResults Lowering::LowerResults(const PtxInstruction& instruction) {
  NeedOperands(instruction, 2);
  if (instruction.modifiers.size() < 2) Reject();
  const auto type = ParseType(*(instruction.modifiers.rbegin() + 1));
  if (!type || TypeBytes(*type) != 4 || TypeBytes(instruction.LastType()) != 4) Reject();
  std::vector<PtxOperand> results = Elements(instruction.operands[0]);
  if (results.size() == 2) results = Elements(PtxOperand(results[0]));
  if (results.size() != 4) Reject();
  TexelResults to;
  for (size_t i = 0; i < 4; ++i) to[i] = Destination(results[i], LetterOf(*type));
  return to;
}

// No array here is sparse: every texel is resident. Told last, for the predicate may be the guard.
void Lowering::LowerResident(const PtxInstruction& instruction) {
  const std::vector<PtxOperand>& results = instruction.operands[0].elements;
  if (results.size() != 2) return;
  EmitPredicate("mov.pred", Destination(results[1], 'p'), Constant(1, 'p'));
}

// tex{.level|.grad}.geometry.v4.type.coordinates {a, b, c, d}, [object, {coordinates}]{, level},
// with gradients {, {along x}, {along y}}
void Lowering::LowerTexture(const PtxInstruction& instruction) {
  const TexelResults to = LowerResults(instruction);
  const bool level = instruction.Has(".level"), gradients = instruction.Has(".grad");
  if (instruction.operands.size() != (gradients ? 4u : level ? 3u : 2u)) Reject();
  const bool whole = instruction.LastType() != Type::kF32;
  if (whole && (level || gradients)) Reject("levels of texels");
  TextureSite& site = LowerSite(instruction, instruction.operands[1], whole);
  site.has_level = level;
  site.has_gradients = gradients;
  if (level) site.level = Source(instruction.operands[2], 'f');
  for (size_t side = 0; gradients && side < 2; ++side) {
    const std::vector<PtxOperand> list = Elements(instruction.operands[2 + side]);
    if (list.size() < static_cast<size_t>(site.dims)) Reject("gradients");
    for (int i = 0; i < site.dims; ++i) {
      site.gradients[side][i] = Source(list[static_cast<size_t>(i)], 'f');
    }
  }
  Instruction& out = Emit(SampleTexture);
  std::copy(to.begin(), to.end(), out.op);
  out.data = &site;
  LowerResident(instruction);
}

// tld4.channel.geometry.v4.type.f32 {a, b, c, d}, [object, {coordinates}]
void Lowering::LowerGather(const PtxInstruction& instruction) {
  const TexelResults to = LowerResults(instruction);
  if (instruction.operands.size() != 2 || instruction.LastType() != Type::kF32) Reject();
  constexpr std::string_view kChannels[] = {".r", ".g", ".b", ".a"};
  const auto* channel = std::find_if(std::begin(kChannels), std::end(kChannels),
                                     [&](std::string_view name) { return instruction.Has(name); });
  if (channel == std::end(kChannels)) Reject();
  TextureSite& site = LowerSite(instruction, instruction.operands[1], false);
  if (site.dims != 2) Reject("geometry");
  Instruction& out = Emit(GatherTexels);
  std::copy(to.begin(), to.end(), out.op);
  out.extra = static_cast<uint32_t>(channel - std::begin(kChannels));
  out.data = &site;
  LowerResident(instruction);
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
