#include "softgpu/engine/texture/texture_ops.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "softgpu/engine/run/machine.h"
#include "softgpu/engine/texture/texture_sample.h"

namespace softgpu {
namespace {

template <class F>
void ForEach(uint32_t mask, const F& act) {
  for (; mask != 0; mask &= mask - 1) act(std::countr_zero(mask));
}

// The views of a warp's lanes, which mostly use one and the same.
class Views {
 public:
  Views(Warp& w, const Instruction& instruction) : w_(w), instruction_(instruction) {}

  // Null after a fault: there is no such object, or its memory is not the device's.
  const TextureView* Of(uint64_t handle) {
    if (handle == last_ && view_ != nullptr) return view_.get();
    last_ = handle;
    view_ = Find(handle);
    if (view_ == nullptr) {
      bool reference = (handle & ~(kMaxReferences - 1)) == kReferenceBase;
      Fault(w_, instruction_, kIllegalAddress,
            reference ? "nothing is bound to the reference" : "no such texture or surface object");
      return nullptr;
    }
    for (const Texels& texels : view_->levels) {
      uint64_t bytes = (texels.depth - 1) * texels.slice_bytes +
                       (texels.height - 1) * texels.row_bytes +
                       uint64_t{texels.width} * view_->texel_bytes();
      if (w_.arena->Allows(texels.address, bytes, w_.device)) continue;
      Fault(w_, instruction_, kIllegalAddress, "the texture's memory is not mapped");
      view_ = nullptr;
      return nullptr;
    }
    return view_.get();
  }

 private:
  std::shared_ptr<const TextureView> Find(uint64_t handle) const {
    if ((handle & ~(kMaxReferences - 1)) != kReferenceBase) return texture_objects::Find(handle);
    const auto& bound = w_.block->launch->config.references;
    uint64_t index = handle - kReferenceBase;
    return index < bound.size() ? bound[index] : nullptr;
  }

  Warp& w_;
  const Instruction& instruction_;
  uint64_t last_ = 0;
  std::shared_ptr<const TextureView> view_;
};

// Where a surface's access goes; null after a fault, or if it goes nowhere.
std::byte* SurfaceAddress(Warp& w, const Instruction& instruction, const TextureView& view,
                          int lane) {
  const auto& site = *static_cast<const TextureSite*>(instruction.data);
  const Texels& texels = view.levels.front();
  const int64_t bytes = int64_t{site.element_bytes} * site.elements;
  const int64_t row = int64_t{texels.width} * view.texel_bytes();
  int64_t at[3] = {};
  for (int i = 0; i < site.dims; ++i) at[i] = w.Reg<int32_t>(site.coordinates[i])[lane];
  if (site.layered) at[2] = w.Reg<int32_t>(site.layer)[lane];
  const int64_t most[] = {row - bytes, int64_t{texels.height} - 1, int64_t{texels.depth} - 1};
  for (int i = 0; i < 3; ++i) {
    if (at[i] >= 0 && at[i] <= most[i]) continue;
    if (site.bounds == Bounds::kTrap || most[i] < 0) {
      Fault(w, instruction, kLaunchFailed, "an access outside of a surface");
      return nullptr;
    }
    if (site.bounds == Bounds::kZero) return nullptr;
    at[i] = std::clamp<int64_t>(at[i], 0, most[i]);
  }
  if (at[0] % bytes != 0) {
    Fault(w, instruction, kMisalignedAddress, "a surface's element is not aligned");
    return nullptr;
  }
  return reinterpret_cast<std::byte*>(texels.address + at[2] * texels.slice_bytes +
                                      at[1] * texels.row_bytes + at[0]);
}

Place PlaceOf(Warp& w, const TextureSite& site, int lane) {
  Place place;
  place.dims = site.dims;
  place.exact = site.whole_coordinates;
  place.layered = site.layered;
  place.cube = site.cube;
  if (site.layered) place.layer = w.Reg<uint32_t>(site.layer)[lane];
  for (int i = 0; i < site.dims; ++i) {
    if (site.whole_coordinates) {
      place.whole[i] = w.Reg<int32_t>(site.coordinates[i])[lane];
    } else {
      place.at[i] = w.Reg<float>(site.coordinates[i])[lane];
    }
  }
  return place;
}

// What `read` makes of each lane's view and place goes to the results.
template <class F>
void ForEachPlace(Warp& w, const Instruction& instruction, const F& read) {
  const auto& site = *static_cast<const TextureSite*>(instruction.data);
  Views views(w, instruction);
  bool failed = false;
  ForEach(w.exec, [&](int lane) {
    if (failed) return;
    const TextureView* view = views.Of(w.Reg<uint64_t>(site.handle)[lane]);
    failed = view == nullptr;
    if (failed) return;
    Place place = PlaceOf(w, site, lane);
    const Texel texel = read(*view, place, lane);
    for (int i = 0; i < 4; ++i) w.Reg<uint32_t>(instruction.op[i])[lane] = texel.bits[i];
  });
}

}  // namespace

void SampleTexture(Warp& w, const Instruction& instruction) {
  const auto& site = *static_cast<const TextureSite*>(instruction.data);
  ForEachPlace(w, instruction, [&](const TextureView& view, Place& place, int lane) {
    if (site.has_level) place.level = w.Reg<float>(site.level)[lane];
    if (site.has_gradients) {
      Gradient gradients[2] = {};
      for (int side = 0; side < 2; ++side) {
        for (int i = 0; i < site.dims; ++i) {
          gradients[side][i] = w.Reg<float>(site.gradients[side][i])[lane];
        }
      }
      place.level = LevelOf(view, place, gradients[0], gradients[1]);
    }
    return Sample(view, place);
  });
}

void GatherTexels(Warp& w, const Instruction& instruction) {
  ForEachPlace(w, instruction, [&](const TextureView& view, const Place& place, int) {
    return Gather(view, place, instruction.extra);
  });
}

void LoadSurface(Warp& w, const Instruction& instruction) {
  const auto& site = *static_cast<const TextureSite*>(instruction.data);
  Views views(w, instruction);
  ForEach(w.exec, [&](int lane) {
    if (w.block->failure.code != 0) return;
    const TextureView* view = views.Of(w.Reg<uint64_t>(site.handle)[lane]);
    if (view == nullptr) return;
    const std::byte* from = SurfaceAddress(w, instruction, *view, lane);
    for (uint32_t i = 0; i < site.elements; ++i) {
      uint64_t value = 0;
      if (from != nullptr) std::memcpy(&value, from + i * site.element_bytes, site.element_bytes);
      if (site.element_bytes == 8) {
        w.Reg<uint64_t>(instruction.op[i])[lane] = value;
      } else {
        w.Reg<uint32_t>(instruction.op[i])[lane] = static_cast<uint32_t>(value);
      }
    }
  });
}

void StoreSurface(Warp& w, const Instruction& instruction) {
  const auto& site = *static_cast<const TextureSite*>(instruction.data);
  Views views(w, instruction);
  ForEach(w.exec, [&](int lane) {
    if (w.block->failure.code != 0) return;
    const TextureView* view = views.Of(w.Reg<uint64_t>(site.handle)[lane]);
    if (view == nullptr) return;
    std::byte* to = SurfaceAddress(w, instruction, *view, lane);
    for (uint32_t i = 0; to != nullptr && i < site.elements; ++i) {
      const uint64_t value = site.element_bytes == 8 ? w.Reg<uint64_t>(instruction.op[i])[lane]
                                                     : w.Reg<uint32_t>(instruction.op[i])[lane];
      std::memcpy(to + i * site.element_bytes, &value, site.element_bytes);
    }
  });
}

void QueryTexture(Warp& w, const Instruction& instruction) {
  const auto& site = *static_cast<const TextureSite*>(instruction.data);
  Views views(w, instruction);
  ForEach(w.exec, [&](int lane) {
    if (w.block->failure.code != 0) return;
    const TextureView* view = views.Of(w.Reg<uint64_t>(site.handle)[lane]);
    if (view == nullptr) return;
    const Texels& texels = view->levels.front();
    const uint32_t sizes[] = {texels.width, texels.height, texels.depth};
    w.Reg<uint32_t>(instruction.op[0])[lane] = sizes[instruction.extra];
  });
}

}  // namespace softgpu
