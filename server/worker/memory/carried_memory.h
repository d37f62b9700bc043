// The session's chunks and their mappings, as a session that moves takes them along: the client
// knows the chunks' numbers and the addresses.
#pragma once

#include <cstdint>
#include <tuple>
#include <vector>

namespace longwire::worker {

struct CarriedChunk {
  uint64_t number = 0;
  uint64_t bytes = 0;
  auto Fields() { return std::tie(number, bytes); }
};

struct CarriedMapping {
  uint64_t address = 0;
  uint64_t bytes = 0;
  uint64_t chunk = 0;
  bool access = true;
  auto Fields() { return std::tie(address, bytes, chunk, access); }
};

struct CarriedMemory {
  uint64_t next_chunk = 1;
  std::vector<CarriedChunk> chunks;
  std::vector<CarriedMapping> mappings;
  auto Fields() { return std::tie(next_chunk, chunks, mappings); }
};

}  // namespace longwire::worker
