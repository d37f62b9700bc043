// The parts of an ELF file that a policy's object needs, each checked against the file's end.
#pragma once

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace longwire::policy {

using Bytes = std::span<const std::byte>;

// `count` values from `offset` on; false if they end beyond the bytes.
bool IsWithin(Bytes bytes, uint64_t offset, uint64_t size);

template <class Value>
bool ReadAt(Bytes bytes, uint64_t offset, Value* value) {
  if (!IsWithin(bytes, offset, sizeof(Value))) return false;
  std::memcpy(value, bytes.data() + offset, sizeof(Value));
  return true;
}

// The text from `offset` to the next zero byte; empty if there is none.
std::string TextAt(Bytes bytes, uint64_t offset);

struct ElfSection {
  std::string name;
  Elf64_Shdr header{};
  Bytes bytes;
};

struct ElfFile {
  std::vector<ElfSection> sections;
  std::vector<Elf64_Sym> symbols;
  Bytes symbol_names;

  const ElfSection* Find(const std::string& name) const;
  std::string NameOf(const Elf64_Sym& symbol) const;
};

// None with a sentence.
std::optional<ElfFile> ReadElf(Bytes file, std::string* sentence);

}  // namespace longwire::policy
