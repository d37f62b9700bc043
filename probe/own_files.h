// Files of this process's user, read with care: a symbolic link, another user's file or one of
// another kind is none, and nothing larger than asked for is read.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <string>
#include <vector>

namespace longwire::probe {

// The names in a folder, of `most` entries at most, in no order; empty if it is no folder of this
// user's, or others may write into it.
std::vector<std::string> NamesIn(const std::string& folder, size_t most);
// False: it is no file of this user's that has from 1 to `most` bytes.
bool IsOwnFile(const std::string& path, size_t most, size_t* bytes);
// Empty: likewise, or it has changed meanwhile.
std::string ReadOwnFile(const std::string& path, size_t most);

}  // namespace longwire::probe
