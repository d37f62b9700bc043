#include "policy/lines.h"

namespace longwire::policy {

namespace {

// As Linux's include/uapi/linux/btf.h and Documentation/bpf/btf.rst have it.
constexpr uint16_t kMagic = 0xeb9f;
constexpr uint32_t kLineShift = 10;  // of line_col; the column is below

struct BtfHeader {
  uint16_t magic;
  uint8_t version;
  uint8_t flags;
  uint32_t header_length;
  uint32_t type_offset, type_length;
  uint32_t text_offset, text_length;
};

struct ExtHeader {
  uint16_t magic;
  uint8_t version;
  uint8_t flags;
  uint32_t header_length;
  uint32_t function_offset, function_length;
  uint32_t line_offset, line_length;
};

struct LineSection {
  uint32_t name;
  uint32_t count;
};

struct Line {
  uint32_t instruction;  // its offset in bytes
  uint32_t file;
  uint32_t text;
  uint32_t line_and_column;
};

// The part of `bytes` behind a header; empty if it is not within.
Bytes Part(Bytes bytes, uint64_t offset, uint64_t length) {
  return IsWithin(bytes, offset, length) ? bytes.subspan(offset, length) : Bytes();
}

std::string BaseName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

std::map<uint32_t, std::string> LinesOf(const ElfFile& elf, const std::string& section) {
  std::map<uint32_t, std::string> lines;
  const ElfSection* btf = elf.Find(".BTF");
  const ElfSection* ext = elf.Find(".BTF.ext");
  BtfHeader header{};
  ExtHeader ext_header{};
  if (btf == nullptr || ext == nullptr || !ReadAt(btf->bytes, 0, &header) ||
      !ReadAt(ext->bytes, 0, &ext_header) || header.magic != kMagic || ext_header.magic != kMagic) {
    return lines;
  }
  const Bytes texts =
      Part(btf->bytes, uint64_t{header.header_length} + header.text_offset, header.text_length);
  const Bytes all = Part(ext->bytes, uint64_t{ext_header.header_length} + ext_header.line_offset,
                         ext_header.line_length);
  uint32_t size = 0;
  if (!ReadAt(all, 0, &size) || size < sizeof(Line)) return lines;
  uint64_t at = sizeof(size);
  LineSection part{};
  while (ReadAt(all, at, &part)) {
    at += sizeof(part);
    const bool wanted = TextAt(texts, part.name) == section;
    Line line{};
    for (uint32_t i = 0; i < part.count; ++i, at += size) {
      if (!ReadAt(all, at, &line)) return lines;
      if (!wanted) continue;
      const std::string file = BaseName(TextAt(texts, line.file));
      lines[line.instruction / 8] = file + ":" + std::to_string(line.line_and_column >> kLineShift);
    }
  }
  return lines;
}

}  // namespace longwire::policy
