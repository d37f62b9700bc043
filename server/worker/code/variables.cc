#include "server/worker/code/variables.h"

#include <elf.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/memory_sizes.h"
#include "server/worker/code/image_bytes.h"
#include "wire/fat_binary.h"

namespace longwire::worker {
namespace {

constexpr size_t kUnpacked = size_t{1} << 30;  // bytes of one image, all entries together
constexpr size_t kUnpackedQuickly = size_t{4} << 20;
constexpr uint64_t kMaxBytes = base::kMaxMemoryBytes;

uint64_t Sum(uint64_t one, uint64_t other) {
  return std::min(one + std::min(other, kMaxBytes), kMaxBytes);
}
uint64_t Product(uint64_t one, uint64_t other) {
  return one != 0 && other > kMaxBytes / one ? kMaxBytes : one * other;
}

// A cubin: sections that are written to and not of one block alone.
uint64_t OfElf(std::span<const char> file) {
  auto header = At<Elf64_Ehdr>(file, 0);
  if (!header || header->e_shentsize < sizeof(Elf64_Shdr)) return 0;
  auto section = [&](uint64_t index) {
    return At<Elf64_Shdr>(file, Product(index, header->e_shentsize) + header->e_shoff);
  };
  auto names = section(header->e_shstrndx);
  uint64_t sum = 0;
  for (uint64_t i = 0; i < header->e_shnum; ++i) {
    auto one = section(i);
    constexpr uint64_t kData = SHF_ALLOC | SHF_WRITE;
    if (!one || (one->sh_flags & kData) != kData) continue;
    std::string_view name = names ? NameAt(file, names->sh_offset + one->sh_name) : "";
    if (name.starts_with(".nv.shared") || name.starts_with(".nv.local")) continue;
    sum = Sum(sum, Sum(one->sh_size, one->sh_addralign <= kMaxBytes ? one->sh_addralign : 0));
  }
  return sum;
}

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Any number within the text, 0 where there is none.
uint64_t NumberIn(std::string_view text) {
  while (!text.empty() && !IsDigit(text.front())) text.remove_prefix(1);
  int base = 10;
  if (text.starts_with("0x") || text.starts_with("0X")) {
    text.remove_prefix(2);
    base = 16;
  }
  uint64_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  return error == std::errc::result_out_of_range ? kMaxBytes : std::min(number, kMaxBytes);
}

// Bytes of an element by the widest number in its type: ".b8", ".u64", ".f16x2", ".v4 .f32".
uint64_t ElementBytes(std::string_view type) {
  uint64_t elements = 1, bits = 0;
  if (type.find("texref") != type.npos || type.find("samplerref") != type.npos ||
      type.find("surfref") != type.npos) {
    return 0;
  }
  while (!type.empty()) {
    size_t dot = type.find('.');
    if (dot == type.npos) break;
    type.remove_prefix(dot + 1);
    std::string_view word = type.substr(0, type.find_first_of(". \t\r\n"));
    if (word == "align") continue;
    if (word == "v2" || word == "v4" || word == "v8") {
      elements = NumberIn(word);
    } else {
      bits = std::max(bits, NumberIn(word) * (word.find('x') == word.npos ? 1 : 2));
    }
  }
  return Product(elements, std::max<uint64_t>(bits / 8, 1));
}

// A declaration behind ".global": type, name, sizes, up to its end or its first value. A list of
// names with sizes counts as one product for each.
uint64_t OfDeclaration(std::string_view text) {
  text = text.substr(0, text.find_first_of(";={"));
  size_t brackets = text.find('[');
  // The name is the last word before the sizes.
  std::string_view type = text.substr(0, brackets);
  while (!type.empty() && IsSpace(type.back())) type.remove_suffix(1);
  size_t name = type.find_last_of(" \t\r\n");
  uint64_t element = ElementBytes(name == type.npos ? type : type.substr(0, name));
  uint64_t sum = 0;
  while (true) {
    size_t comma = text.find(',');
    std::string_view one = text.substr(0, comma);
    uint64_t bytes = element;
    for (size_t at = one.find('['); at != one.npos; at = one.find('[', at + 1)) {
      bytes =
          Product(bytes, std::max<uint64_t>(NumberIn(one.substr(at, one.find(']', at) - at)), 1));
    }
    sum = Sum(sum, bytes);
    if (comma == text.npos) return sum;
    text.remove_prefix(comma + 1);
  }
}

// The text itself bounds the values whose number stands nowhere.
uint64_t OfPtx(std::span<const char> code) {
  std::string_view text(code.data(), strnlen(code.data(), code.size()));
  if (text.find(".version") == text.npos) return 0;
  constexpr std::string_view kGlobal = ".global";
  uint64_t sum = 0;
  for (size_t at = text.find(kGlobal); at != text.npos; at = text.find(kGlobal, at + 1)) {
    size_t behind = at + kGlobal.size();
    bool word = (at == 0 || IsSpace(text[at - 1]) || text[at - 1] == '}' || text[at - 1] == ';' ||
                 text[at - 1] == '/') &&
                behind < text.size() && (IsSpace(text[behind]) || text[behind] == '.');
    if (!word) continue;
    sum = Sum(sum, OfDeclaration(text.substr(behind)));
  }
  return text.find("[]") == text.npos ? sum : Sum(sum, text.size());
}

uint64_t OfPlain(std::span<const char> code) {
  bool elf = code.size() >= SELFMAG && std::memcmp(code.data(), ELFMAG, SELFMAG) == 0;
  return elf ? OfElf(code) : OfPtx(code);
}

}  // namespace

uint64_t VariableBytes(std::span<const std::byte> image, bool whole) {
  std::span<const char> code(reinterpret_cast<const char*>(image.data()), image.size());
  auto magic = At<uint32_t>(code, 0);
  if (!magic || *magic != wire::kFatContainerMagic) return OfPlain(code);
  // The driver takes what is of one kind for one architecture.
  std::map<std::pair<uint16_t, uint32_t>, uint64_t> sums;
  size_t left = whole ? kUnpacked : kUnpackedQuickly;
  wire::ForEachFatEntry(code, [&](const wire::FatEntry& entry) {
    uint64_t& sum = sums[{entry.kind, entry.architecture}];
    std::string plain;
    if (Unpack(entry, left, &plain) != wire::Unpacked::kDone) return;
    left -= std::min(left, plain.size());
    sum = Sum(sum, OfPlain(plain));
  });
  uint64_t most = 0;
  for (const auto& [kind, sum] : sums) most = std::max(most, sum);
  return most;
}

}  // namespace longwire::worker
