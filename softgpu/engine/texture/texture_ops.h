// The instructions of textures and surfaces: what lowering leaves to their handlers.
#pragma once

#include "softgpu/engine/run/code.h"

namespace softgpu {

// What an access outside of a surface does.
enum class Bounds : uint8_t { kTrap, kClamp, kZero };

struct TextureSite {
  int dims = 1;
  bool layered = false;
  bool cube = false;
  bool whole_coordinates = false;  // integers: texels, not filtered
  bool has_level = false;
  bool has_gradients = false;
  Bounds bounds = Bounds::kTrap;
  uint32_t element_bytes = 4;  // of a surface's access
  uint32_t elements = 1;
  OperandOffset handle = 0;  // 64 bits: an object's number, or a reference's value
  OperandOffset layer = 0;
  OperandOffset coordinates[3] = {};
  OperandOffset level = 0;
  OperandOffset gradients[2][3] = {};
};

// op: 0 to 3 the results or what is stored; data: a TextureSite.
void SampleTexture(Warp& w, const Instruction& instruction);
// extra: the channel.
void GatherTexels(Warp& w, const Instruction& instruction);
void LoadSurface(Warp& w, const Instruction& instruction);
void StoreSurface(Warp& w, const Instruction& instruction);
// extra: 0 width, 1 height, 2 depth.
void QueryTexture(Warp& w, const Instruction& instruction);

}  // namespace softgpu
