#include "client-shim/mirror/file_mappings.h"

#include <cstdio>
#include <cstdlib>

#include "wire/descriptors.h"

namespace longwire::shim {
namespace {

struct Mapping {
  unsigned long long start = 0, end = 0, inode = 0;
  char rights[5] = {};
};

// Whether any mapping with pages of the range is wanted.
template <class Wanted>
bool AnyMapping(uint64_t address, uint64_t bytes, Wanted wanted) {
  FILE* maps = wire::OpenStream("/proc/self/maps", "r");
  if (maps == nullptr) return false;
  char* line = nullptr;
  size_t room = 0;
  bool found = false;
  // "7f5c00000000-7f5c00021000 rw-s 00000000 00:01 1027 /dev/shm/x", by address.
  while (!found && getline(&line, &room, maps) > 0) {
    Mapping mapping;
    if (std::sscanf(line, "%llx-%llx %4s %*s %*s %llu", &mapping.start, &mapping.end,
                    mapping.rights, &mapping.inode) != 4) {
      continue;
    }
    if (mapping.start >= address + bytes) break;
    found = mapping.end > address && wanted(mapping);
  }
  std::free(line);
  std::fclose(maps);
  return found;
}

}  // namespace

bool IsFileMapping(uint64_t address, uint64_t bytes) {
  return AnyMapping(address, bytes, [](const Mapping& mapping) { return mapping.inode != 0; });
}

bool IsSharedMapping(uint64_t address, uint64_t bytes) {
  return AnyMapping(address, bytes, [](const Mapping& mapping) {
    return mapping.rights[1] == 'w' && mapping.rights[3] == 's';
  });
}

}  // namespace longwire::shim
