#include "cli/elf_program.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "wire/socket.h"

namespace longwire::cli {
namespace {

// A program has a dozen segments, some forty dynamic entries, and a path of a few hundred bytes.
constexpr size_t kMaxSegments = 256;
constexpr size_t kMaxDynamicEntries = 4096;  // entries
constexpr size_t kMaxTextBytes = 64 << 10;
constexpr size_t kMaxSearchedBytes = size_t{256} << 20;
constexpr size_t kStep = 1 << 20;

// Not one that would be waited for, such as a pipe.
wire::Descriptor OpenFile(const std::string& path) {
  wire::Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat status {};
  if (file.valid() && (fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode))) file.Reset();
  return file;
}

bool ReadAt(int file, uint64_t offset, void* to, size_t bytes) {
  if (offset > INT64_MAX - bytes) return false;
  return pread(file, to, bytes, static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes);
}

bool IsOurs(const Elf64_Ehdr& header) {
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return false;
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB)
    return false;
#ifdef __x86_64__
  if (header.e_machine != EM_X86_64) return false;
#endif
  return (header.e_type == ET_EXEC || header.e_type == ET_DYN) &&
         header.e_phentsize == sizeof(Elf64_Phdr) && header.e_phnum <= kMaxSegments;
}

// Where the bytes at that address of the program lie in its file.
std::optional<uint64_t> OffsetOf(const std::vector<Elf64_Phdr>& segments, uint64_t address) {
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type != PT_LOAD || address < segment.p_vaddr) continue;
    uint64_t within = address - segment.p_vaddr;
    if (within < segment.p_filesz && segment.p_offset <= INT64_MAX - within) {
      return segment.p_offset + within;
    }
  }
  return std::nullopt;
}

struct Dynamic {
  std::optional<uint64_t> strings, rpath, runpath;
};

Dynamic ReadDynamic(int file, const Elf64_Phdr& segment) {
  std::vector<Elf64_Dyn> entries(
      std::min<uint64_t>(segment.p_filesz / sizeof(Elf64_Dyn), kMaxDynamicEntries));
  Dynamic found;
  if (!ReadAt(file, segment.p_offset, entries.data(), entries.size() * sizeof(Elf64_Dyn)))
    return {};
  for (const Elf64_Dyn& entry : entries) {
    if (entry.d_tag == DT_NULL) break;
    if (entry.d_tag == DT_STRTAB) found.strings = entry.d_un.d_ptr;
    if (entry.d_tag == DT_RPATH) found.rpath = entry.d_un.d_val;
    if (entry.d_tag == DT_RUNPATH) found.runpath = entry.d_un.d_val;
  }
  return found;
}

// The text that begins there and ends with a zero; empty when it does not end soon.
std::string TextAt(int file, uint64_t offset) {
  std::string text(kMaxTextBytes, '\0');
  if (offset > INT64_MAX - text.size()) return {};
  ssize_t got = pread(file, text.data(), text.size(), static_cast<off_t>(offset));
  if (got <= 0) return {};
  size_t end = text.find('\0');
  return end < static_cast<size_t>(got) ? text.substr(0, end) : std::string();
}

std::vector<std::string> Split(const std::string& path) {
  std::vector<std::string> folders;
  for (size_t begin = 0; begin <= path.size();) {
    size_t end = std::min(path.find(':', begin), path.size());
    if (end != begin) folders.push_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return folders;
}

}  // namespace

std::optional<ElfProgram> ReadElf(const std::string& path) {
  wire::Descriptor file = OpenFile(path);
  Elf64_Ehdr header{};
  if (!file.valid() || !ReadAt(file.get(), 0, &header, sizeof header) || !IsOurs(header)) {
    return std::nullopt;
  }
  std::vector<Elf64_Phdr> segments(header.e_phnum);
  if (!ReadAt(file.get(), header.e_phoff, segments.data(), segments.size() * sizeof(Elf64_Phdr))) {
    return std::nullopt;
  }
  ElfProgram program;
  Dynamic dynamic;
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type == PT_INTERP) program.has_interpreter = true;
    if (segment.p_type == PT_DYNAMIC) dynamic = ReadDynamic(file.get(), segment);
  }
  // With a RUNPATH the dynamic linker does not look at the RPATH.
  if (!dynamic.rpath || !dynamic.strings || dynamic.runpath) return program;
  auto strings = OffsetOf(segments, *dynamic.strings);
  if (strings && *dynamic.rpath <= INT64_MAX - *strings) {
    program.first_folders = Split(TextAt(file.get(), *strings + *dynamic.rpath));
  }
  return program;
}

bool FileContains(const std::string& path, std::string_view text) {
  wire::Descriptor file = OpenFile(path);
  if (!file.valid() || text.empty()) return false;
  std::string bytes;
  for (size_t offset = 0; offset < kMaxSearchedBytes; offset += kStep) {
    // What could begin a match stays in front of the next piece.
    bytes.erase(0, bytes.size() - std::min(bytes.size(), text.size() - 1));
    size_t kept = bytes.size();
    bytes.resize(kept + kStep);
    ssize_t got = pread(file.get(), bytes.data() + kept, kStep, static_cast<off_t>(offset));
    if (got <= 0) return false;
    bytes.resize(kept + static_cast<size_t>(got));
    if (bytes.find(text) != std::string::npos) return true;
    if (static_cast<size_t>(got) < kStep) return false;
  }
  return false;
}

}  // namespace longwire::cli
