#include "server/worker/code/carried_variables.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <string_view>

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

bool IsPtx(std::string_view code) {
  return !code.starts_with(
             "\x7f"
             "ELF") &&
         code.find(".version") != code.npos;
}

}  // namespace

std::string NamesOfVariables(std::span<const std::byte> image, std::vector<std::string>* names) {
  const std::string kNoPtx = "one of its modules is not in PTX, whose variables are not known";
  std::span<const char> code(reinterpret_cast<const char*>(image.data()), image.size());
  auto magic = At<uint32_t>(code, 0);
  if (!magic || *magic != wire::kFatContainerMagic) {
    std::string_view text(code.data(), code.size());
    return IsPtx(text) ? OfPtx(text, names) : kNoPtx;
  }
  std::string problem;
  size_t texts = 0;
  bool whole = wire::ForEachFatEntry(code, [&](const wire::FatEntry& entry) {
    std::string plain;
    bool unpacked = Unpack(entry, kMaxPlain, &plain) == wire::Unpacked::kDone;
    if (!problem.empty() || !unpacked || !IsPtx(plain)) return;
    if (++texts == 1) problem = OfPtx(plain, names);
  });
  if (!problem.empty()) return problem;
  if (!whole || texts == 0) return kNoPtx;
  return texts == 1 ? ""
                    : "one of its modules has code for several devices; which is used is not "
                      "known";
}

}  // namespace longwire::worker
