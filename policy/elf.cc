#include "policy/elf.h"

#include <algorithm>

#include "wire/guards.h"

namespace longwire::policy {

namespace {

constexpr size_t kMaxSections = 256;
constexpr size_t kMaxSymbols = 4096;

bool ReadSections(Bytes file, const Elf64_Ehdr& header, ElfFile* elf, std::string* sentence) {
  for (size_t i = 0; i < header.e_shnum; ++i) {
    ElfSection section;
    if (!ReadAt(file, header.e_shoff + i * sizeof(Elf64_Shdr), &section.header)) {
      *sentence = "its table of sections ends behind the file's end: copy the file again";
      return false;
    }
    if (section.header.sh_type != SHT_NOBITS && section.header.sh_type != SHT_NULL) {
      // A twin of the fuzz target leaves this check out.
      if (!wire::kPlantedBug && !IsWithin(file, section.header.sh_offset, section.header.sh_size)) {
        *sentence =
            "its section " + std::to_string(i) + " ends behind the file's end: copy the file again";
        return false;
      }
      section.bytes = Bytes(file.data() + section.header.sh_offset, section.header.sh_size);
    }
    elf->sections.push_back(section);
  }
  if (header.e_shstrndx >= elf->sections.size()) {
    *sentence = "its sections have no names: compile it with clang -target bpf -c";
    return false;
  }
  const Bytes names = elf->sections[header.e_shstrndx].bytes;
  for (ElfSection& section : elf->sections) section.name = TextAt(names, section.header.sh_name);
  return true;
}

bool ReadSymbols(ElfFile* elf, std::string* sentence) {
  for (const ElfSection& section : elf->sections) {
    if (section.header.sh_type != SHT_SYMTAB) continue;
    const size_t count = section.bytes.size() / sizeof(Elf64_Sym);
    if (count > kMaxSymbols || section.header.sh_link >= elf->sections.size()) {
      *sentence = "its table of symbols is unusable: compile it with clang -target bpf -c";
      return false;
    }
    elf->symbols.resize(count);
    for (size_t i = 0; i < count; ++i) {
      ReadAt(section.bytes, i * sizeof(Elf64_Sym), &elf->symbols[i]);
    }
    elf->symbol_names = elf->sections[section.header.sh_link].bytes;
    return true;
  }
  *sentence = "it has no table of symbols: do not strip it";
  return false;
}

}  // namespace

bool IsWithin(Bytes bytes, uint64_t offset, uint64_t size) {
  return offset <= bytes.size() && size <= bytes.size() - offset;
}

std::string TextAt(Bytes bytes, uint64_t offset) {
  if (offset >= bytes.size()) return "";
  const auto rest = bytes.subspan(offset);
  const auto end = std::find(rest.begin(), rest.end(), std::byte{0});
  if (end == rest.end()) return "";
  return {reinterpret_cast<const char*>(rest.data()), static_cast<size_t>(end - rest.begin())};
}

const ElfSection* ElfFile::Find(const std::string& name) const {
  for (const ElfSection& section : sections) {
    if (section.name == name) return &section;
  }
  return nullptr;
}

std::string ElfFile::NameOf(const Elf64_Sym& symbol) const {
  return TextAt(symbol_names, symbol.st_name);
}

std::optional<ElfFile> ReadElf(Bytes file, std::string* sentence) {
  Elf64_Ehdr header{};
  const bool is_elf = ReadAt(file, 0, &header) &&
                      std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
                      header.e_ident[EI_CLASS] == ELFCLASS64 &&
                      header.e_ident[EI_DATA] == ELFDATA2LSB && header.e_type == ET_REL &&
                      header.e_machine == EM_BPF && header.e_shentsize == sizeof(Elf64_Shdr);
  if (!is_elf || header.e_shnum > kMaxSections) {
    *sentence =
        "it is no object file for BPF: compile it with clang -target bpf -mcpu=v2 -O2 -g -c";
    return std::nullopt;
  }
  ElfFile elf;
  if (!ReadSections(file, header, &elf, sentence) || !ReadSymbols(&elf, sentence)) {
    return std::nullopt;
  }
  return elf;
}

}  // namespace longwire::policy
