#include "client-shim/memory/external_memory.h"

#include <unistd.h>

#include <map>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "base/try.h"
#include "client-shim/context/context.h"
#include "client-shim/entry/error_log.h"
#include "client-shim/memory/opened_memory.h"
#include "client-shim/memory/sharing.h"
#include "client-shim/memory/virtual_memory.h"
#include "client-shim/support/handle_table.h"
#include "client-shim/support/never_destroyed.h"

namespace longwire::shim {
namespace {

struct External {
  uint64_t table_index = 0;
  SharedToken token{};
  uint64_t physical = 0;  // keeps the memory as long as the handle lives
  uint64_t whole = 0;     // bytes of the memory
  uint64_t bytes = 0;     // that were asked for
};
using ExternalTable = HandleTable<External, HandleKind::kExternalMemory>;

ExternalTable& Externals() {
  static NeverDestroyed<ExternalTable> table;
  return *table;
}

struct Buffers {
  base::Mutex mutex{base::ranks::kExternalBuffers};
  // A buffer's address to the whole memory's.
  std::multimap<uint64_t, uint64_t> start_of LONGWIRE_GUARDED_BY(mutex);
};

Buffers& TheBuffers() {
  static NeverDestroyed<Buffers> buffers;
  return *buffers;
}

External* Find(CUexternalMemory handle) {
  return Externals().Find(reinterpret_cast<uint64_t>(handle));
}

}  // namespace

CUresult ImportExternal(int descriptor, uint64_t bytes, CUexternalMemory* handle) {
  SharedToken token{};
  if (!TokenFromDescriptor(TokenKind::kMemory, descriptor, &token)) {
    LogError(
        "cuImportExternalMemory: the descriptor is not of memory on the server; only what "
        "cuMemExportToShareableHandle gives can be imported");
    return CUDA_ERROR_OPERATING_SYSTEM;
  }
  uint64_t physical = 0, whole = 0;
  LONGWIRE_TRY(ImportPhysical(descriptor, &physical));
  LONGWIRE_TRY(PhysicalBytes(physical, &whole));
  External* made = bytes == 0 || bytes > whole ? nullptr : Externals().New();
  if (made == nullptr) {
    ReleasePhysical(physical);
    return bytes == 0 || bytes > whole ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_OUT_OF_MEMORY;
  }
  made->token = token;
  made->physical = physical;
  made->whole = whole;
  made->bytes = bytes;
  *handle = reinterpret_cast<CUexternalMemory>(Externals().Publish(made));
  close(descriptor);
  return CUDA_SUCCESS;
}

CUresult MapExternal(CUexternalMemory handle, uint64_t offset, uint64_t bytes, uint64_t* address) {
  External* external = Find(handle);
  if (external == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (bytes == 0 || offset > external->bytes || bytes > external->bytes - offset) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Context* context = nullptr;
  LONGWIRE_TRY(RequireHealthyContext(&context));
  // The memory is opened as a whole: overlapping buffers have the same addresses for the same
  // bytes.
  SharedPiece piece;
  piece.token = external->token;
  piece.bytes = external->whole;
  uint64_t start = 0;
  LONGWIRE_TRY(OpenShared(piece, context, &start));
  *address = start + offset;
  Buffers& buffers = TheBuffers();
  base::MutexLock lock(buffers.mutex);
  buffers.start_of.emplace(*address, start);
  return CUDA_SUCCESS;
}

CUresult DestroyExternal(CUexternalMemory handle) {
  External* external = Find(handle);
  if (external == nullptr || !Externals().Retire(external)) return CUDA_ERROR_INVALID_HANDLE;
  CUresult result = ReleasePhysical(external->physical);
  Externals().Recycle(external);
  return result;
}

bool IsExternalBuffer(uint64_t address) {
  Buffers& buffers = TheBuffers();
  base::MutexLock lock(buffers.mutex);
  return buffers.start_of.count(address) != 0;
}

CUresult FreeExternalBuffer(uint64_t address) {
  uint64_t start = 0;
  {
    Buffers& buffers = TheBuffers();
    base::MutexLock lock(buffers.mutex);
    auto found = buffers.start_of.find(address);
    if (found == buffers.start_of.end()) return CUDA_ERROR_INVALID_VALUE;
    start = found->second;
    buffers.start_of.erase(found);
  }
  return CloseShared(start);
}

}  // namespace longwire::shim
