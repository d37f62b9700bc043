#include "client-shim/mirror/file_mappings.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "wire/descriptors.h"

namespace longwire::shim {

std::vector<ProcessMapping> MappingsOf(uint64_t address, uint64_t bytes) {
  std::vector<ProcessMapping> found;
  FILE* maps = wire::OpenStream("/proc/self/maps", "r");
  if (maps == nullptr) return found;
  char* line = nullptr;
  size_t room = 0;
  // "7f5c00000000-7f5c00021000 rw-s 00000000 00:01 1027 /dev/shm/x", by address.
  while (getline(&line, &room, maps) > 0) {
    unsigned long long begin = 0, end = 0, inode = 0;
    ProcessMapping mapping;
    if (std::sscanf(line, "%llx-%llx %4s %*s %*s %llu", &begin, &end, mapping.rights.data(),
                    &inode) != 4) {
      continue;
    }
    mapping.begin = begin;
    mapping.end = end;
    mapping.inode = inode;
    if (mapping.begin >= address + bytes) break;
    if (mapping.end > address) found.push_back(mapping);
  }
  std::free(line);
  std::fclose(maps);
  return found;
}

bool IsFileMapping(uint64_t address, uint64_t bytes) {
  return std::ranges::any_of(MappingsOf(address, bytes),
                             [](const ProcessMapping& mapping) { return mapping.inode != 0; });
}

bool IsSharedMapping(uint64_t address, uint64_t bytes) {
  return std::ranges::any_of(MappingsOf(address, bytes), [](const ProcessMapping& mapping) {
    return mapping.may_write() && mapping.is_shared();
  });
}

}  // namespace longwire::shim
