#include "server/worker/code/image_functions.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>

#include "server/worker/code/image_bytes.h"
#include "server/worker/code/ptx_functions.h"
#include "wire/fat_binary.h"
#include "wire/guards.h"
#include "wire/limits.h"

namespace longwire::worker {
namespace {

constexpr size_t kUnpackedLimit = size_t{1} << 30;  // bytes of one image, all entries together
constexpr size_t kParameterLimit = 4096;            // 32,764 bytes of them at most

// What a cubin's section .nv.info.NAME says of each parameter, as `cuobjdump -elf` prints it:
// records of a format, an attribute and, with this format, the length of the bytes behind them.
constexpr uint8_t kSizedFormat = 4;
constexpr uint8_t kParameterAttribute = 0x17;
struct ParameterRecord {
  uint32_t index;
  uint16_t ordinal;
  uint16_t offset;
  uint32_t size_and_space;  // the size in the upper 14 bits
};

FunctionParameters OfInfo(std::span<const char> info) {
  FunctionParameters places;
  for (uint64_t at = 0; at + 4 <= info.size();) {
    const auto format = static_cast<uint8_t>(info[at]);
    const auto attribute = static_cast<uint8_t>(info[at + 1]);
    const uint16_t bytes = format == kSizedFormat ? At<uint16_t>(info, at + 2).value_or(0) : 0;
    auto record = At<ParameterRecord>(info, at + 4);
    if (format == kSizedFormat && attribute == kParameterAttribute && record &&
        bytes >= sizeof(ParameterRecord) && record->ordinal < kParameterLimit) {
      if (places.size() <= record->ordinal) places.resize(record->ordinal + size_t{1});
      places[record->ordinal] = {record->offset, record->size_and_space >> 18};
    }
    at += uint64_t{4} + bytes;
  }
  return places;
}

void OfElf(std::span<const char> file, std::map<std::string, FunctionParameters>* functions) {
  constexpr std::string_view kCode = ".text.", kInfo = ".nv.info.";
  auto header = At<Elf64_Ehdr>(file, 0);
  if (!header || header->e_shentsize < sizeof(Elf64_Shdr)) return;
  auto section = [&](uint64_t index) -> std::optional<Elf64_Shdr> {
    if (header->e_shoff > file.size()) return std::nullopt;
    return At<Elf64_Shdr>(file, header->e_shoff + index * header->e_shentsize);
  };
  auto names = section(header->e_shstrndx);
  if (!names || names->sh_offset > file.size()) return;
  for (uint64_t i = 0; i < header->e_shnum; ++i) {
    auto one = section(i);
    if (!one || (one->sh_offset > file.size() && !wire::kPlantedBug)) continue;
    std::string_view name = NameAt(file, names->sh_offset + one->sh_name);
    if (name.starts_with(kCode)) (*functions)[std::string(name.substr(kCode.size()))];
    if (!name.starts_with(kInfo)) continue;
    uint64_t bytes = std::min<uint64_t>(one->sh_size, file.size() - one->sh_offset);
    (*functions)[std::string(name.substr(kInfo.size()))] =
        OfInfo(file.subspan(one->sh_offset, bytes));
  }
}

void OfPlain(std::span<const char> code, std::map<std::string, FunctionParameters>* functions) {
  if (code.size() >= SELFMAG && std::memcmp(code.data(), ELFMAG, SELFMAG) == 0) {
    OfElf(code, functions);
  } else {
    FunctionsOfPtx({code.data(), strnlen(code.data(), code.size())}, functions);
  }
}

}  // namespace

std::map<std::string, FunctionParameters> FunctionsOfImage(std::span<const std::byte> image) {
  std::map<std::string, FunctionParameters> functions;
  std::span<const char> code(reinterpret_cast<const char*>(image.data()), image.size());
  auto magic = At<uint32_t>(code, 0);
  if (!magic || *magic != wire::kFatContainerMagic) {
    OfPlain(code, &functions);
    return functions;
  }
  size_t left = kUnpackedLimit;
  wire::ForEachFatEntry(code, [&](const wire::FatEntry& entry) {
    std::string plain;
    if (functions.size() > wire::kMaxFunctions) return;
    if (Unpack(entry, left, &plain) != wire::Unpacked::kDone) return;
    left -= std::min(left, plain.size());
    OfPlain(plain, &functions);
  });
  return functions;
}

}  // namespace longwire::worker
