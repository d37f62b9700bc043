#include "policy/object.h"

#include <algorithm>
#include <cstring>

#include "policy/elf.h"
#include "policy/flow.h"
#include "policy/include/longwire/policy.h"
#include "policy/lines.h"

namespace longwire::policy {

namespace {

constexpr uint32_t kPolicyMaps[] = {LW_ARRAY, LW_HASH};
constexpr char kMapSection[] = "maps";
constexpr uint32_t kMapReference = 1;    // R_BPF_64_64
constexpr uint32_t kCallReference = 10;  // R_BPF_64_32

bool ReadMaps(const ElfFile& elf, const ObjectKind& kind, Object* object,
              std::map<uint64_t, size_t>* by_symbol, std::string* sentence) {
  const ElfSection* section = elf.Find(kMapSection);
  if (section == nullptr) return true;
  for (size_t i = 0; i < elf.symbols.size(); ++i) {
    const Elf64_Sym& symbol = elf.symbols[i];
    if (ELF64_ST_TYPE(symbol.st_info) != STT_OBJECT || symbol.st_shndx >= elf.sections.size() ||
        &elf.sections[symbol.st_shndx] != section) {
      continue;
    }
    MapShape shape{elf.NameOf(symbol), 0, 0};
    const bool read = ReadAt(section->bytes, symbol.st_value, &shape.type) &&
                      ReadAt(section->bytes, symbol.st_value + sizeof(uint32_t), &shape.entries);
    const bool known = std::ranges::find(kind.map_types, shape.type) != kind.map_types.end();
    if (!read || !known || shape.entries == 0 || shape.entries > kMaxMapEntries ||
        shape.name.empty()) {
      *sentence = "its map '" + shape.name + "' is none: declare it as LW_MAP(name, " +
                  kind.map_advice + ", 1 to " + std::to_string(kMaxMapEntries) + ")";
      return false;
    }
    (*by_symbol)[i] = object->maps.size();
    object->maps.push_back(shape);
  }
  if (object->maps.size() <= kMaxMaps) return true;
  *sentence = "it has more than " + std::to_string(kMaxMaps) + " maps: use fewer";
  return false;
}

// The function that fills the section; empty with a sentence.
std::string FunctionOf(const ElfFile& elf, size_t section, std::string* sentence) {
  std::string name;
  for (const Elf64_Sym& symbol : elf.symbols) {
    if (symbol.st_shndx != section || ELF64_ST_TYPE(symbol.st_info) != STT_FUNC) continue;
    if (!name.empty() || symbol.st_value != 0) {
      *sentence = "its section '" + elf.sections[section].name +
                  "' has several functions: a hook is one function, so inline the others";
      return "";
    }
    name = elf.NameOf(symbol);
  }
  if (name.empty()) {
    *sentence = "its section '" + elf.sections[section].name + "' has no function";
  }
  return name;
}

bool Resolve(const ElfFile& elf, const Elf64_Rel& entry,
             const std::map<uint64_t, size_t>& map_of_symbol, HookCode* code,
             std::string* sentence) {
  const uint64_t at = entry.r_offset / sizeof(Instruction);
  const uint64_t number = ELF64_R_SYM(entry.r_info);
  const uint32_t type = ELF64_R_TYPE(entry.r_info);
  if (entry.r_offset % sizeof(Instruction) != 0 || at >= code->instructions.size() ||
      number >= elf.symbols.size()) {
    *sentence = "in " + code->function + " a reference points nowhere: compile it again";
    return false;
  }
  Instruction& instruction = code->instructions[at];
  const std::string name = elf.NameOf(elf.symbols[number]);
  const std::string place = code->Place(static_cast<uint32_t>(at));
  const auto map = map_of_symbol.find(number);
  if (type == kMapReference && instruction.code == kLoadWide && map != map_of_symbol.end() &&
      at + 1 < code->instructions.size()) {
    instruction.immediate = static_cast<int32_t>(map->second);
    code->instructions[at + 1].immediate = 0;
    return true;
  }
  if (type == kCallReference && instruction.code == kCall &&
      elf.symbols[number].st_shndx == SHN_UNDEF) {
    code->helpers[static_cast<uint32_t>(at)] = name;
    instruction.registers &= 0x0f;
    return true;
  }
  *sentence = place + ": ";
  *sentence += instruction.code == kCall
                   ? "it calls '" + name + "', a function of the object: make it static inline"
                   : "it uses '" + name + "', a global variable: use a map, LW_MAP";
  return false;
}

bool ReadReferences(const ElfFile& elf, size_t section,
                    const std::map<uint64_t, size_t>& map_of_symbol, HookCode* code,
                    std::string* sentence) {
  for (const ElfSection& table : elf.sections) {
    if (table.header.sh_type != SHT_REL || table.header.sh_info != section) continue;
    Elf64_Rel entry{};
    for (uint64_t at = 0; ReadAt(table.bytes, at, &entry); at += sizeof(entry)) {
      if (!Resolve(elf, entry, map_of_symbol, code, sentence)) return false;
    }
  }
  return true;
}

}  // namespace

const ObjectKind kPolicies{"hook/", kPolicyMaps, "LW_ARRAY or LW_HASH",
                           "it has no hook: put a function into one by LW_HOOK(name)"};

std::optional<Object> ReadObject(std::span<const std::byte> file, std::string* sentence,
                                 const ObjectKind& kind) {
  if (file.size() > kMaxObjectBytes) {
    *sentence = "it is larger than 1 MiB, which no policy is";
    return std::nullopt;
  }
  const auto elf = ReadElf(file, sentence);
  if (!elf) return std::nullopt;
  Object object;
  std::map<uint64_t, size_t> map_of_symbol;
  if (!ReadMaps(*elf, kind, &object, &map_of_symbol, sentence)) return std::nullopt;
  for (size_t i = 0; i < elf->sections.size(); ++i) {
    const ElfSection& section = elf->sections[i];
    if (section.header.sh_type != SHT_PROGBITS || !section.name.starts_with(kind.prefix)) continue;
    HookCode code;
    code.hook = section.name.substr(std::strlen(kind.prefix));
    code.function = FunctionOf(*elf, i, sentence);
    if (code.function.empty()) return std::nullopt;
    code.lines = LinesOf(*elf, section.name);
    const size_t count = section.bytes.size() / sizeof(Instruction);
    if (count == 0 || count > kMaxInstructions) {
      *sentence = code.Place(0) + ": it has " + std::to_string(count) +
                  " instructions; it has to be 1 to " + std::to_string(kMaxInstructions);
      return std::nullopt;
    }
    code.instructions.resize(count);
    std::memcpy(code.instructions.data(), section.bytes.data(), count * sizeof(Instruction));
    if (!ReadReferences(*elf, i, map_of_symbol, &code, sentence) || !CheckFlow(code, sentence)) {
      return std::nullopt;
    }
    object.hooks.push_back(std::move(code));
  }
  if (!object.hooks.empty()) return object;
  *sentence = kind.advice;
  return std::nullopt;
}

}  // namespace longwire::policy
