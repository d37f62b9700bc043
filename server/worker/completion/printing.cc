#include "server/worker/completion/printing.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

#include "wire/fat_binary.h"

namespace longwire::worker {
namespace {

constexpr std::string_view kFunction = "vprintf";

bool IsElf(std::span<const char> code) {
  return code.size() >= SELFMAG && std::memcmp(code.data(), ELFMAG, SELFMAG) == 0;
}

// A PTX text, of which padding may follow.
bool IsText(std::span<const char> code) {
  std::string_view text(code.data(), strnlen(code.data(), code.size()));
  return text.find(".version") != std::string_view::npos;
}

}  // namespace

void Printing::Loads(std::span<const std::byte> image) {
  if (possible()) return;
  base::MutexLock lock(mutex_);
  if (Names({reinterpret_cast<const char*>(image.data()), image.size()})) possible_.store(true);
}

bool Printing::Names(std::span<const char> image) {
  uint32_t magic = 0;
  std::memcpy(&magic, image.data(), std::min(image.size(), sizeof(magic)));
  if (magic != wire::kFatContainerMagic) return NamesPlain(image, &left_);
  bool names = false;
  size_t left = left_;
  bool whole = wire::ForEachFatEntry(image, [&](const wire::FatEntry& entry) {
    std::string code;
    names = names || Unpack(entry, left, &code) != wire::Unpacked::kDone || NamesPlain(code, &left);
  });
  left_ = left;
  return names || !whole;
}

bool Printing::NamesPlain(std::span<const char> code, size_t* left) {
  if (code.size() > *left) return true;
  *left -= code.size();
  if (!IsElf(code) && !IsText(code)) return true;
  std::string_view all(code.data(), code.size());
  return all.find(kFunction) != std::string_view::npos;
}

}  // namespace longwire::worker
