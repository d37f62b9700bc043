#include "client-shim/mirror/shared_mappings.h"

#include <cstdio>
#include <cstdlib>

#include "wire/descriptors.h"

namespace longwire::shim {

bool IsSharedMapping(uint64_t address, uint64_t bytes) {
  FILE* maps = wire::OpenStream("/proc/self/maps", "r");
  if (maps == nullptr) return false;
  char* line = nullptr;
  size_t room = 0;
  bool shared = false;
  // "7f5c00000000-7f5c00021000 rw-s …", by address.
  while (!shared && getline(&line, &room, maps) > 0) {
    unsigned long long start = 0, end = 0;
    char rights[5] = {};
    if (std::sscanf(line, "%llx-%llx %4s", &start, &end, rights) != 3) continue;
    if (start >= address + bytes) break;
    shared = end > address && rights[1] == 'w' && rights[3] == 's';
  }
  std::free(line);
  std::fclose(maps);
  return shared;
}

}  // namespace longwire::shim
