#include "server/driver/client_library.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cstring>
#include <string_view>

#include "wire/socket.h"

namespace longwire {
namespace {

// An environment variable that the client library alone reads, in every version.
constexpr std::string_view kMark = "LONGWIRE_LINK";

// The object of this type at the offset, if it lies within the file.
template <class T>
bool ReadAt(std::string_view file, uint64_t offset, T* object) {
  if (offset > file.size() || file.size() - offset < sizeof(T)) return false;
  std::memcpy(object, file.data() + offset, sizeof(T));
  return true;
}

std::string_view Part(std::string_view file, uint64_t offset, uint64_t bytes) {
  if (offset > file.size() || bytes > file.size() - offset) return {};
  return file.substr(offset, bytes);
}

// The constants of a library: a section, found by its name, so that little of a large driver is
// read.
std::string_view Constants(std::string_view file) {
  Elf64_Ehdr header;
  Elf64_Shdr names, section;
  if (!ReadAt(file, 0, &header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return {};
  auto read_section = [&](unsigned index, Elf64_Shdr* into) {
    return ReadAt(file, header.e_shoff + uint64_t{index} * sizeof(Elf64_Shdr), into);
  };
  if (!read_section(header.e_shstrndx, &names)) return {};
  std::string_view text = Part(file, names.sh_offset, names.sh_size);
  for (unsigned i = 0; i < header.e_shnum && read_section(i, &section); ++i) {
    if (section.sh_name >= text.size()) continue;
    std::string_view name = text.substr(section.sh_name);
    if (name.substr(0, name.find('\0')) != ".rodata") continue;
    return Part(file, section.sh_offset, section.sh_size);
  }
  return {};
}

}  // namespace

bool IsClientLibrary(const std::string& path) {
  wire::Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (!file.valid() || fstat(file.get(), &status) != 0 || status.st_size <= 0) return false;
  const auto bytes = static_cast<size_t>(status.st_size);
  void* mapped = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (mapped == MAP_FAILED) return false;
  std::string_view constants = Constants({static_cast<const char*>(mapped), bytes});
  bool found = !constants.empty() &&
               memmem(constants.data(), constants.size(), kMark.data(), kMark.size()) != nullptr;
  munmap(mapped, bytes);
  return found;
}

}  // namespace longwire
