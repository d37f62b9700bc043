// The process's mappings. Mappings of files are also memory files, and memory that is shared
// without a file, which is one of the kernel's. Whoever else has the file may write it, and shorten
// it.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace longwire::shim {

struct ProcessMapping {
  uint64_t begin = 0, end = 0, inode = 0;
  std::array<char, 5> rights{};  // "rwxp"

  bool may_read() const { return rights[0] == 'r'; }
  bool may_write() const { return rights[1] == 'w'; }
  bool is_shared() const { return rights[3] == 's'; }
};

// Those with pages of the range, by address.
std::vector<ProcessMapping> MappingsOf(uint64_t address, uint64_t bytes);

// Whether any page of the range is one of a file.
bool IsFileMapping(uint64_t address, uint64_t bytes);

// Whether any page of it is shared and may be written.
bool IsSharedMapping(uint64_t address, uint64_t bytes);

}  // namespace longwire::shim
