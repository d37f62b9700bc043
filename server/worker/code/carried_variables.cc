#include "server/worker/code/carried_variables.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <string_view>

#include "server/worker/code/carried_cubin.h"
#include "server/worker/code/image_bytes.h"
#include "wire/fat_binary.h"

namespace longwire::worker {
namespace {

constexpr size_t kMaxPlain = size_t{256} << 20;  // of one entry
constexpr std::string_view kBlanks = " \t\r\n";

// Without comments and texts in quotes, so that words in them count for nothing.
std::string Bare(std::string_view text) {
  std::string bare;
  for (size_t i = 0; i < text.size();) {
    if (text.substr(i, 2) == "//") {
      i = std::min(text.find('\n', i), text.size());
    } else if (text.substr(i, 2) == "/*") {
      size_t end = text.find("*/", i + 2);
      i = end == text.npos ? text.size() : end + 2;
    } else if (text[i] == '"') {
      size_t end = text.find('"', i + 1);
      i = end == text.npos ? text.size() : end + 1;
    } else {
      bare += text[i++];
    }
  }
  return bare;
}

bool IsOfName(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '%' ||
         c == '.';
}

bool HasWord(std::string_view text, std::string_view word) {
  for (size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) {
    bool begins = at == 0 || !IsOfName(text[at - 1]);
    size_t end = at + word.size();
    if (begins && (end == text.size() || !IsOfName(text[end]))) return true;
  }
  return false;
}

// The names in a declaration behind its state space: "align 4 .b8 name[16] = {…}", up to its end.
void AddNames(std::string_view declaration, std::vector<std::string>* names) {
  declaration = declaration.substr(0, declaration.find_first_of(";={"));
  while (!declaration.empty()) {
    std::string_view one = declaration.substr(0, declaration.find(','));
    declaration.remove_prefix(std::min(one.size() + 1, declaration.size()));
    one = one.substr(0, one.find('['));
    while (!one.empty() && kBlanks.find(one.back()) != kBlanks.npos) one.remove_suffix(1);
    size_t begin = one.find_last_of(kBlanks);
    std::string name(begin == one.npos ? one : one.substr(begin + 1));
    if (!name.empty()) names->push_back(std::move(name));
  }
}

bool IsReference(std::string_view declaration) {
  declaration = declaration.substr(0, declaration.find_first_of(";={"));
  return declaration.find(".texref") != declaration.npos ||
         declaration.find(".surfref") != declaration.npos ||
         declaration.find(".samplerref") != declaration.npos;
}

std::string OfPtx(std::string_view code, std::vector<std::string>* names) {
  const std::string text = Bare(code.substr(0, strnlen(code.data(), code.size())));
  if (HasWord(text, "malloc") || HasWord(text, "free")) {
    return "one of its modules uses the device's heap, which is not carried";
  }
  if (text.find(".callprototype") != text.npos || text.find(".calltargets") != text.npos) {
    return "one of its modules calls through addresses of code, which cannot be compared";
  }
  if (HasWord(text, ".extern") && text.find(".extern .func") == text.npos &&
      text.find(".extern .shared") == text.npos) {
    return "one of its modules has variables of another module, which are not carried";
  }
  for (std::string_view space : {".global", ".const"}) {
    for (size_t at = text.find(space); at != text.npos; at = text.find(space, at + 1)) {
      // A declaration, not an instruction as in "ld.global.u32".
      const size_t behind = at + space.size();
      const bool begins = at == 0 || !IsOfName(text[at - 1]);
      if (!begins || behind == text.size() || kBlanks.find(text[behind]) == kBlanks.npos) continue;
      if (text[text.find_first_not_of(kBlanks, behind)] != '.') continue;  // of a parameter
      std::string_view declaration = std::string_view(text).substr(behind);
      if (IsReference(declaration)) {
        return "one of its modules has texture or surface references, which are not carried";
      }
      AddNames(declaration, names);
    }
  }
  return "";
}

bool IsElf(std::string_view code) {
  return code.starts_with(
      "\x7f"
      "ELF");
}

bool IsPtx(std::string_view code) { return !IsElf(code) && code.find(".version") != code.npos; }

// The entries of a container, unpacked, of which one is loaded.
struct Entries {
  // Several of one kind, as for sm_90 and sm_90a: which is loaded is the driver's choice.
  std::vector<std::string> cubins;
  uint32_t cubins_of = 0;  // 90 for sm_90; 0: none
  std::string ptx;
  size_t ptx_texts = 0;
};

// A device runs cubins of its own generation, not newer than itself.
bool Runs(uint32_t capability, uint32_t of) {
  return of / 10 == capability / 10 && of <= capability;
}

std::string OfCubins(const std::vector<std::string>& cubins, std::vector<std::string>* names) {
  std::string problem = NamesOfCubin(cubins.front(), names);
  for (size_t i = 1; problem.empty() && i < cubins.size(); ++i) {
    std::vector<std::string> others;
    problem = NamesOfCubin(cubins[i], &others);
    if (problem.empty() && others != *names) {
      problem = "one of its modules has two kinds of code for the device, with other variables";
    }
  }
  return problem;
}

const char* const kUnknown = "one of its modules is in a form whose variables are not known";

std::string OfContainer(std::span<const char> code, std::optional<uint32_t> capability,
                        std::vector<std::string>* names) {
  Entries entries;
  bool unpacked = true;
  bool whole = wire::ForEachFatEntry(code, [&](const wire::FatEntry& entry) {
    const bool is_cubin = entry.kind == wire::FatEntry::kCubin;
    if (is_cubin && (!capability || !Runs(*capability, entry.architecture))) return;
    std::string plain;
    unpacked &= Unpack(entry, kMaxPlain, &plain) == wire::Unpacked::kDone;
    if (is_cubin && entry.architecture >= entries.cubins_of) {
      if (entry.architecture != entries.cubins_of) entries.cubins.clear();
      entries.cubins.push_back(std::move(plain));
      entries.cubins_of = entry.architecture;
    } else if (IsPtx(plain) && ++entries.ptx_texts == 1) {
      entries.ptx = std::move(plain);
    }
  });
  if (!whole || !unpacked) return kUnknown;
  if (!entries.cubins.empty()) return OfCubins(entries.cubins, names);
  if (entries.ptx_texts == 1) return OfPtx(entries.ptx, names);
  return entries.ptx_texts == 0 ? kUnknown
                                : "one of its modules has code for several devices; which is used "
                                  "is not known";
}

}  // namespace

std::string NamesOfVariables(std::span<const std::byte> image, std::optional<uint32_t> capability,
                             std::vector<std::string>* names) {
  std::span<const char> code(reinterpret_cast<const char*>(image.data()), image.size());
  auto magic = At<uint32_t>(code, 0);
  if (magic && *magic == wire::kFatContainerMagic) return OfContainer(code, capability, names);
  std::string_view text(code.data(), code.size());
  if (IsElf(text) && capability) return NamesOfCubin(code, names);
  return IsPtx(text) ? OfPtx(text, names) : kUnknown;
}

}  // namespace longwire::worker
