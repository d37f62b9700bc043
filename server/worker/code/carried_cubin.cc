#include "server/worker/code/carried_cubin.h"

#include <elf.h>

#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "server/worker/code/image_bytes.h"

namespace longwire::worker {
namespace {

const char* const kDamaged = "one of its modules cannot be read";
// Separates the lists of .nv.callgraph; behind it are functions and those whose addresses they
// take.
constexpr uint32_t kAddressesFollow = 0xfffffffc;
// Functions of the driver's that keep nothing for the next launch.
constexpr std::string_view kKnown[] = {"vprintf", "__assertfail"};
constexpr std::string_view kKnownBeginning = "__cuda";

class Cubin {
 public:
  explicit Cubin(std::span<const char> file) : file_(file), header_(At<Elf64_Ehdr>(file, 0)) {
    if (!header_ || header_->e_shentsize < sizeof(Elf64_Shdr)) return;
    for (uint32_t i = 0; i < header_->e_shnum; ++i) {
      auto section =
          At<Elf64_Shdr>(file, header_->e_shoff + uint64_t{i} * uint64_t{header_->e_shentsize});
      if (!section) return;
      sections_.push_back(*section);
    }
    if (header_->e_shstrndx >= sections_.size()) return;
    for (const Elf64_Shdr& one : sections_) {
      if (one.sh_type == SHT_SYMTAB && one.sh_link < sections_.size()) symbols_ = &one;
    }
  }

  std::string Read(std::vector<std::string>* names) {
    if (symbols_ == nullptr) return kDamaged;
    std::string problem = ReadSymbols();
    for (size_t i = 0; problem.empty() && i < sections_.size(); ++i) {
      const Elf64_Shdr& section = sections_[i];
      if (section.sh_type == SHT_RELA) problem = ReadAddresses(section);
      if (NameOf(section) == ".nv.callgraph") problem = ReadCalls(section);
      if (problem.empty() && IsWritable(section) && section.sh_size != 0) {
        if (variables_[i].empty()) return "one of its modules has memory without a name";
        for (std::string& name : variables_[i]) names->push_back(std::move(name));
      }
    }
    if (problem.empty() && std::set(names->begin(), names->end()).size() != names->size()) {
      return "one of its modules has two variables of one name";
    }
    return problem;
  }

 private:
  std::string_view NameOf(const Elf64_Shdr& section) const {
    return NameAt(file_, sections_[header_->e_shstrndx].sh_offset + section.sh_name);
  }

  // By the device's code between two launches, or by the host.
  bool IsWritable(const Elf64_Shdr& section) const {
    const std::string_view name = NameOf(section);
    return name == ".nv.global" || name == ".nv.global.init" || name == ".nv.constant3";
  }

  std::optional<Elf64_Sym> Symbol(uint64_t index) const {
    if (index >= symbols_->sh_size / sizeof(Elf64_Sym)) return std::nullopt;
    return At<Elf64_Sym>(file_, symbols_->sh_offset + index * sizeof(Elf64_Sym));
  }

  std::string ReadSymbols() {
    for (uint64_t i = 0; i < symbols_->sh_size / sizeof(Elf64_Sym); ++i) {
      auto symbol = Symbol(i);
      if (!symbol) return kDamaged;
      const auto type = ELF64_ST_TYPE(symbol->st_info);
      std::string name(
          NameAt(file_, sections_[symbols_->sh_link].sh_offset + uint64_t{symbol->st_name}));
      if (symbol->st_shndx == SHN_UNDEF) {
        std::string problem = OfOthers(type, name);
        if (!problem.empty()) return problem;
      } else if (type == STT_OBJECT && symbol->st_shndx < sections_.size()) {
        variables_[symbol->st_shndx].push_back(std::move(name));
      }
    }
    return "";
  }

  static std::string OfOthers(unsigned type, const std::string& name) {
    if (type == STT_FUNC && (name == "malloc" || name == "free")) {
      return "one of its modules uses the device's heap, which is not carried";
    }
    bool known = type != STT_FUNC || name.starts_with(kKnownBeginning);
    for (std::string_view one : kKnown) known |= name == one;
    if (!known) {
      return "one of its modules calls " + name + " of the driver, whose state is not carried";
    }
    if (type == STT_OBJECT && !name.starts_with(".nv.")) {
      return "one of its modules has variables of another module, which are not carried";
    }
    return "";
  }

  // Addresses of functions that the driver writes into code or data. A function's own address in
  // its code is where it goes on after a call.
  std::string ReadAddresses(const Elf64_Shdr& section) const {
    const std::string_view name = NameOf(section);
    if (name.starts_with(".rela.debug") || name.starts_with(".rela.nv_debug")) return "";
    const bool in_code = name.starts_with(".rela.text");
    for (uint64_t at = 0; at + sizeof(Elf64_Rela) <= section.sh_size; at += sizeof(Elf64_Rela)) {
      auto entry = At<Elf64_Rela>(file_, section.sh_offset + at);
      if (!entry) return kDamaged;
      auto symbol = Symbol(ELF64_R_SYM(entry->r_info));
      if (!symbol) return kDamaged;
      if (ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || symbol->st_shndx == SHN_UNDEF) continue;
      if (in_code && (IsCall(ELF64_R_TYPE(entry->r_info)) || entry->r_addend != 0)) continue;
      return kAddresses;
    }
    return "";
  }

  static bool IsCall(uint64_t type) {
    constexpr uint64_t kRelativeCall = 0x4b;  // as nvcc 13 writes it for sm_90
    return type == kRelativeCall;
  }

  std::string ReadCalls(const Elf64_Shdr& section) const {
    bool follow = false;
    for (uint64_t at = 0; at + 8 <= section.sh_size; at += 8) {
      auto caller = At<uint32_t>(file_, section.sh_offset + at);
      auto callee = At<uint32_t>(file_, section.sh_offset + at + 4);
      if (!caller || !callee) return kDamaged;
      if (follow) return kAddresses;
      follow = *caller == 0 && *callee == kAddressesFollow;
    }
    return "";
  }

  static constexpr const char* kAddresses =
      "one of its modules takes addresses of code, which cannot be compared";

  const std::span<const char> file_;
  const std::optional<Elf64_Ehdr> header_;
  std::vector<Elf64_Shdr> sections_;
  const Elf64_Shdr* symbols_ = nullptr;
  std::map<size_t, std::vector<std::string>> variables_;  // by the section
};

}  // namespace

std::string NamesOfCubin(std::span<const char> file, std::vector<std::string>* names) {
  return Cubin(file).Read(names);
}

}  // namespace longwire::worker
