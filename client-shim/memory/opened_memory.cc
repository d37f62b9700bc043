#include "client-shim/memory/opened_memory.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <vector>

#include "client-shim/context/properties.h"
#include "client-shim/memory/device_memory.h"
#include "client-shim/memory/device_ranges.h"
#include "client-shim/memory/peers.h"
#include "client-shim/session/session.h"
#include "client-shim/support/never_destroyed.h"
#include "longwire/calls.h"

namespace longwire::shim {
namespace {

struct Mapped {
  BorrowedChunks memory;
  uint64_t address = 0;
  std::vector<int> accessors;  // devices
  uint32_t pieces = 0;         // open
};

struct Piece {
  SharedToken token{};
  uint32_t opened = 0;  // times
};

struct Opened {
  std::mutex mutex;
  std::map<SharedToken, Mapped> mapped;
  std::map<uint64_t, Piece> pieces;  // by address
};

Opened& TheOpened() {
  static NeverDestroyed<Opened> opened;
  return *opened;
}

CUresult MapBorrowed(const SharedToken& token, Mapped* mapped) {
  CUresult result = BorrowChunks(token, &mapped->memory);
  if (result != CUDA_SUCCESS) return result;
  DeviceMemory* memory = MemoryOf(mapped->memory.device);
  if (!memory->TakeAddresses(mapped->memory.bytes, 0, &mapped->address)) {
    memory->ReturnChunks(mapped->memory.chunks);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  calls::lwMap map;
  map.device = FindDevice(mapped->memory.device)->server_ordinal;
  map.address = mapped->address;
  map.chunk = mapped->memory.chunks;
  TheSession().Submit({}, map, 64 + map.chunk.size() * sizeof(uint64_t));
  mapped->accessors = LetPeersReach(mapped->memory.device, mapped->address, mapped->memory.bytes);
  return CUDA_SUCCESS;
}

CUresult UnmapBorrowed(const Mapped& mapped) {
  calls::lwUnmap unmap;
  unmap.address = mapped.address;
  unmap.bytes = mapped.memory.bytes;
  // The addresses may be used again right away: the worker must have unmapped them by then.
  CUresult result = TheSession().CallAndWait({0, nullptr, wire::kWantsReply}, unmap).code;
  if (result != CUDA_SUCCESS) return result;
  DeviceMemory* memory = MemoryOf(mapped.memory.device);
  memory->ReturnChunks(mapped.memory.chunks);
  memory->GiveAddresses(mapped.address, mapped.memory.bytes);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult OpenShared(const SharedPiece& piece, Context* context, uint64_t* address) {
  Opened& opened = TheOpened();
  std::lock_guard<std::mutex> lock(opened.mutex);
  auto found = opened.mapped.find(piece.token);
  if (found == opened.mapped.end()) {
    Mapped mapped;
    CUresult result = MapBorrowed(piece.token, &mapped);
    if (result != CUDA_SUCCESS) return result;
    found = opened.mapped.emplace(piece.token, std::move(mapped)).first;
  }
  Mapped& mapped = found->second;
  uint64_t bytes = mapped.memory.bytes;
  // As natively: the context's device must be able to reach it.
  bool reaches = std::ranges::count(mapped.accessors, context->device) != 0;
  bool inside = piece.offset < bytes && piece.bytes <= bytes - piece.offset;
  if (!reaches || !inside) {
    if (mapped.pieces == 0 && UnmapBorrowed(mapped) == CUDA_SUCCESS) opened.mapped.erase(found);
    return inside ? CUDA_ERROR_PEER_ACCESS_UNSUPPORTED : CUDA_ERROR_INVALID_VALUE;
  }
  *address = mapped.address + piece.offset;
  Piece& entry = opened.pieces[*address];
  if (entry.opened++ != 0) return CUDA_SUCCESS;
  entry.token = piece.token;
  ++mapped.pieces;
  AddForeignRange(*address, piece.bytes, context);
  return CUDA_SUCCESS;
}

CUresult CloseShared(uint64_t address) {
  Opened& opened = TheOpened();
  std::lock_guard<std::mutex> lock(opened.mutex);
  auto piece = opened.pieces.find(address);
  if (piece == opened.pieces.end()) return CUDA_ERROR_INVALID_VALUE;
  if (--piece->second.opened != 0) return CUDA_SUCCESS;
  auto mapped = opened.mapped.find(piece->second.token);
  opened.pieces.erase(piece);
  RemoveForeignRange(address);
  if (--mapped->second.pieces != 0) return CUDA_SUCCESS;
  CUresult result = UnmapBorrowed(mapped->second);
  opened.mapped.erase(mapped);
  return result;
}

bool FindOpenedAccess(uint64_t address, int device, bool* reaches) {
  Opened& opened = TheOpened();
  std::lock_guard<std::mutex> lock(opened.mutex);
  auto after = opened.pieces.upper_bound(address);
  if (after == opened.pieces.begin()) return false;
  const Mapped& mapped = opened.mapped.at(std::prev(after)->second.token);
  if (address - mapped.address >= mapped.memory.bytes) return false;
  *reaches = std::ranges::count(mapped.accessors, device) != 0;
  return true;
}

bool IsOpen(const SharedPiece& piece) {
  Opened& opened = TheOpened();
  std::lock_guard<std::mutex> lock(opened.mutex);
  auto mapped = opened.mapped.find(piece.token);
  return mapped != opened.mapped.end() &&
         opened.pieces.count(mapped->second.address + piece.offset) != 0;
}

bool IsOpenedPiece(uint64_t address) {
  Opened& opened = TheOpened();
  std::lock_guard<std::mutex> lock(opened.mutex);
  return opened.pieces.count(address) != 0;
}

}  // namespace longwire::shim
