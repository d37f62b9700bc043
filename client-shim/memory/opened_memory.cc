#include "client-shim/memory/opened_memory.h"

#include <algorithm>
#include <map>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "base/try.h"
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
  // Held while memory is opened or closed, which waits for the server; look-ups do without.
  base::Mutex change_mutex LONGWIRE_ACQUIRED_BEFORE(mutex);
  base::Mutex mutex{base::ranks::kOpenedMemory};
  std::map<SharedToken, Mapped> mapped LONGWIRE_GUARDED_BY(mutex);
  std::map<uint64_t, Piece> pieces LONGWIRE_GUARDED_BY(mutex);  // by address
};

Opened& TheOpened() {
  static NeverDestroyed<Opened> opened;
  return *opened;
}

CUresult MapBorrowed(const SharedToken& token, Mapped* mapped) {
  LONGWIRE_TRY(BorrowChunks(token, &mapped->memory));
  DeviceMemory* memory = MemoryOf(mapped->memory.device);
  if (!memory->TakeAddresses(mapped->memory.bytes, 0, &mapped->address)) {
    memory->ReturnChunks(mapped->memory.chunks);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  calls::lwMap map;
  map.device = FindDevice(mapped->memory.device)->server_ordinal;
  map.address = mapped->address;
  map.chunk = mapped->memory.chunks;
  FindDevice(mapped->memory.device)->session->Submit({}, map, map.EncodedBytes());
  mapped->accessors = LetPeersReach(mapped->memory.device, mapped->address, mapped->memory.bytes);
  return CUDA_SUCCESS;
}

CUresult UnmapBorrowed(const Mapped& mapped) {
  calls::lwUnmap unmap;
  unmap.address = mapped.address;
  unmap.bytes = mapped.memory.bytes;
  // The addresses may be used again right away: the worker must have unmapped them by then.
  LONGWIRE_TRY(FindDevice(mapped.memory.device)
                   ->session->CallAndWait({0, nullptr, wire::kWantsReply}, unmap)
                   .code);
  DeviceMemory* memory = MemoryOf(mapped.memory.device);
  memory->ReturnChunks(mapped.memory.chunks);
  memory->GiveAddresses(mapped.address, mapped.memory.bytes);
  return CUDA_SUCCESS;
}

// Maps the token's memory unless it is mapped already.
CUresult MapOnce(Opened& opened, const SharedToken& token) LONGWIRE_REQUIRES(opened.change_mutex)
    LONGWIRE_EXCLUDES(opened.mutex) {
  {
    base::MutexLock lock(opened.mutex);
    if (opened.mapped.contains(token)) return CUDA_SUCCESS;
  }
  Mapped mapped;
  LONGWIRE_TRY(MapBorrowed(token, &mapped));
  base::MutexLock lock(opened.mutex);
  opened.mapped.emplace(token, std::move(mapped));
  return CUDA_SUCCESS;
}

}  // namespace

CUresult OpenShared(const SharedPiece& piece, Context* context, uint64_t* address) {
  Opened& opened = TheOpened();
  base::MutexLock changing(opened.change_mutex);
  LONGWIRE_TRY(MapOnce(opened, piece.token));
  base::MutexLock lock(opened.mutex);
  auto found = opened.mapped.find(piece.token);
  Mapped& mapped = found->second;
  uint64_t bytes = mapped.memory.bytes;
  // As natively: the context's device must be able to reach it.
  bool reaches = std::ranges::count(mapped.accessors, context->device) != 0;
  bool inside = piece.offset < bytes && piece.bytes <= bytes - piece.offset;
  if (!reaches || !inside) {
    bool unused = mapped.pieces == 0;
    lock.Unlock();
    unused = unused && UnmapBorrowed(mapped) == CUDA_SUCCESS;
    lock.Lock();
    if (unused) opened.mapped.erase(found);
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
  base::MutexLock changing(opened.change_mutex);
  base::MutexLock lock(opened.mutex);
  auto piece = opened.pieces.find(address);
  if (piece == opened.pieces.end()) return CUDA_ERROR_INVALID_VALUE;
  if (--piece->second.opened != 0) return CUDA_SUCCESS;
  auto mapped = opened.mapped.find(piece->second.token);
  opened.pieces.erase(piece);
  RemoveForeignRange(address);
  if (--mapped->second.pieces != 0) return CUDA_SUCCESS;
  lock.Unlock();
  CUresult result = UnmapBorrowed(mapped->second);
  lock.Lock();
  opened.mapped.erase(mapped);
  return result;
}

bool FindOpenedAccess(uint64_t address, int device, bool* reaches) {
  Opened& opened = TheOpened();
  base::MutexLock lock(opened.mutex);
  auto after = opened.pieces.upper_bound(address);
  if (after == opened.pieces.begin()) return false;
  const Mapped& mapped = opened.mapped.at(std::prev(after)->second.token);
  if (address - mapped.address >= mapped.memory.bytes) return false;
  *reaches = std::ranges::count(mapped.accessors, device) != 0;
  return true;
}

bool IsOpen(const SharedPiece& piece) {
  Opened& opened = TheOpened();
  base::MutexLock lock(opened.mutex);
  auto mapped = opened.mapped.find(piece.token);
  return mapped != opened.mapped.end() &&
         opened.pieces.count(mapped->second.address + piece.offset) != 0;
}

bool IsOpenedPiece(uint64_t address) {
  Opened& opened = TheOpened();
  base::MutexLock lock(opened.mutex);
  return opened.pieces.count(address) != 0;
}

}  // namespace longwire::shim
