// Small files that say who has a session, each with the SHA-256 of its content behind it: a file
// that is there is whole.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace longwire::daemon {

// Written beside it, down to the disk, and then given its name; replaces what has the name. False
// with errno: then either may be there.
bool WriteNoteFile(const std::string& folder, const std::string& name,
                   std::span<const std::byte> content);
// False if there is none, or it is damaged.
bool ReadNoteFile(const std::string& path, std::vector<std::byte>* content);
// Down to the disk, too. False with errno if it is still there.
bool RemoveNoteFile(const std::string& folder, const std::string& name);
bool FolderToDisk(const std::string& folder);

// Behind the name of a file that is not whole yet.
inline constexpr const char* kHalfFile = ".part";

}  // namespace longwire::daemon
