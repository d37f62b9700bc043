#include "client-shim/code/image.h"

#include <elf.h>

#include <algorithm>
#include <cstring>

#include "wire/fat_binary.h"
#include "wire/limits.h"

namespace longwire::shim {
namespace {

constexpr uint32_t kWrapperMagic = 0x466243b1;
constexpr uint32_t kElfMagic = 0x464c457f;
constexpr uint32_t kPrelinkedWrapper = 2;  // its last pointer leads to an array of parts
constexpr size_t kMaxContainers = 4096;

struct Wrapper {
  uint32_t magic;
  uint32_t version;
  const std::byte* container;
  const std::byte* const* prelinked;
};

struct ContainerHeader {
  uint32_t magic;
  uint16_t version;
  uint16_t header_bytes;
  uint64_t content_bytes;
};

uint32_t Magic(const std::byte* image) {
  uint32_t magic;
  std::memcpy(&magic, image, sizeof(magic));
  return magic;
}

// False if it is none. One that has no content leaves *bytes empty.
bool MeasureContainer(const std::byte* container, std::span<const std::byte>* bytes) {
  if (container == nullptr || Magic(container) != wire::kFatContainerMagic) return false;
  ContainerHeader header;
  std::memcpy(&header, container, sizeof(header));
  if (header.content_bytes > wire::kMaxImageBytes) return false;
  if (header.content_bytes > 0) *bytes = {container, header.header_bytes + header.content_bytes};
  return true;
}

Image MeasureWrapper(const std::byte* code) {
  Wrapper wrapper;
  std::memcpy(&wrapper, code, sizeof(wrapper));
  Image image;
  if (!MeasureContainer(wrapper.container, &image.bytes)) return {};
  bool has_parts = wrapper.version == kPrelinkedWrapper && wrapper.prelinked != nullptr;
  for (size_t i = 0; has_parts && i < kMaxContainers && wrapper.prelinked[i] != nullptr; ++i) {
    std::span<const std::byte> part;
    if (!MeasureContainer(wrapper.prelinked[i], &part)) return {};
    if (!part.empty()) image.parts.push_back(part);
  }
  image.kind = ImageKind::kContainer;
  return image;
}

}  // namespace

uint64_t CubinBytes(const std::byte* image) {
  Elf64_Ehdr elf;
  std::memcpy(&elf, image, sizeof(elf));
  if (elf.e_ident[EI_CLASS] != ELFCLASS64) return 0;
  // Program headers may stand behind the section headers.
  uint64_t end =
      std::max<uint64_t>({sizeof(elf), elf.e_shoff + uint64_t{elf.e_shnum} * elf.e_shentsize,
                          elf.e_phoff + uint64_t{elf.e_phnum} * elf.e_phentsize});
  if (end > wire::kMaxImageBytes || elf.e_shentsize < sizeof(Elf64_Shdr)) return 0;
  for (unsigned i = 0; i < elf.e_shnum; ++i) {
    Elf64_Shdr section;
    std::memcpy(&section, image + elf.e_shoff + uint64_t{i} * elf.e_shentsize, sizeof(section));
    if (section.sh_type == SHT_NOBITS) continue;
    if (section.sh_offset > wire::kMaxImageBytes || section.sh_size > wire::kMaxImageBytes)
      return 0;
    end = std::max<uint64_t>(end, section.sh_offset + section.sh_size);
  }
  return end;
}

Image MeasureImage(const void* code) {
  Image image;
  auto* bytes = static_cast<const std::byte*>(code);
  switch (Magic(bytes)) {
    case kWrapperMagic:
      return MeasureWrapper(bytes);
    case wire::kFatContainerMagic:
      if (MeasureContainer(bytes, &image.bytes)) image.kind = ImageKind::kContainer;
      return image;
    case kElfMagic: {
      uint64_t length = CubinBytes(bytes);
      if (length == 0 || length > wire::kMaxImageBytes) return {};
      image.kind = ImageKind::kCubin;
      image.bytes = {bytes, length};
      return image;
    }
    default: {
      size_t length = strnlen(static_cast<const char*>(code), wire::kMaxImageBytes);
      if (length == wire::kMaxImageBytes || length == 0) return {};
      image.kind = ImageKind::kText;
      image.bytes = {bytes, length + 1};
      return image;
    }
  }
}

}  // namespace longwire::shim
