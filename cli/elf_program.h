// What a program's file says of how its libraries are found. The file may be anybody's: nothing in
// it is believed, and whatever does not fit makes it no program.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace longwire::cli {

struct ElfProgram {
  bool has_interpreter = false;  // none: it is statically linked
  // Folders that are searched before LD_LIBRARY_PATH (DT_RPATH without DT_RUNPATH), as they stand
  // in the file.
  std::vector<std::string> first_folders;
};

// Of a 64-bit ELF program of this machine's kind; nullopt of anything else, a script for one.
std::optional<ElfProgram> ReadElf(const std::string& path);

// Whether the text is somewhere in the file, of which only the first quarter of a GiB is read.
bool FileContains(const std::string& path, std::string_view text);

}  // namespace longwire::cli
