// How a program finds its libraries, by its ELF file. The file is not trusted: all offsets and
// sizes are checked, and an invalid file counts as no program.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace longwire::cli {

struct ElfProgram {
  bool has_interpreter = false;  // none: it is statically linked
  // Folders that are searched before LD_LIBRARY_PATH (DT_RPATH without DT_RUNPATH), verbatim.
  std::vector<std::string> first_folders;
};

// For 64-bit ELF programs of this architecture; nullopt for anything else, such as a script.
std::optional<ElfProgram> ReadElf(const std::string& path);

// True if the first 256 MiB of the file contain the text.
bool FileContains(const std::string& path, std::string_view text);

}  // namespace longwire::cli
