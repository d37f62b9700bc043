#include "probe/image.h"

#include <cstring>

#include "probe/rewrite.h"
#include "softgpu/engine/ptx/ptx_check.h"
#include "wire/fat_binary.h"

namespace longwire::probe {

namespace {

constexpr char kHowTo[] =
    "; build it with PTX (nvcc -gencode arch=compute_NN,code=compute_NN), or choose other kernels "
    "with --kernels";

bool IsFatBinary(std::span<const char> image) {
  uint32_t magic = 0;
  if (image.size() < sizeof(magic)) return false;
  std::memcpy(&magic, image.data(), sizeof(magic));
  return magic == wire::kFatContainerMagic;
}

void CutAtZero(std::string* text) { text->resize(std::strlen(text->c_str())); }

}  // namespace

bool PtxOf(std::span<const char> image, int capability, std::string* ptx, std::string* sentence) {
  if (softgpu::StartsAsPtx({image.data(), strnlen(image.data(), image.size())})) {
    ptx->assign(image.data(), image.size());
    CutAtZero(ptx);
    return true;
  }
  if (!IsFatBinary(image)) {
    *sentence = "it is code of one architecture, without PTX";
    *sentence += kHowTo;
    return false;
  }
  wire::FatEntry best;
  uint32_t newest = 0;
  wire::ForEachFatEntry(image, [&](const wire::FatEntry& entry) {
    if (entry.kind != wire::FatEntry::kPtx) return;
    newest = std::max(newest, entry.architecture);
    if (entry.architecture > static_cast<uint32_t>(capability)) return;
    if (entry.architecture > best.architecture) best = entry;
  });
  if (best.architecture == 0) {
    *sentence = "it has code for architectures, but no PTX";
    if (newest != 0) {
      *sentence = "its PTX is for devices of compute capability " + std::to_string(newest / 10) +
                  "." + std::to_string(newest % 10) + " and newer";
    }
    *sentence += kHowTo;
    return false;
  }
  if (wire::Unpack(best, kMaxRewrittenBytes, ptx) != wire::Unpacked::kDone) {
    *sentence = "its PTX cannot be unpacked: it is damaged, or larger than 64 MiB";
    return false;
  }
  CutAtZero(ptx);
  return true;
}

}  // namespace longwire::probe
