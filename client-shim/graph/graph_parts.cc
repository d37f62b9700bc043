// What nodes of graphs refer to in this process: memory, by transfers, and functions, by tickets.
#include <algorithm>
#include <unordered_map>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "client-shim/graph/graph.h"
#include "client-shim/session/pinned_segment.h"
#include "client-shim/session/session.h"
#include "client-shim/stream/callbacks.h"
#include "client-shim/support/never_destroyed.h"

namespace longwire::shim {
namespace {

// Copies of nodes as the program described them.
struct NodeCopies {
  base::Mutex mutex{base::ranks::kNodeCopies};
  std::unordered_map<uint64_t, CUDA_MEMCPY3D> by_transfer LONGWIRE_GUARDED_BY(mutex);
};

NodeCopies& TheNodeCopies() {
  static NeverDestroyed<NodeCopies> copies;
  return *copies;
}

// A side of a captured copy, of which only the memory is known.
bool FindHostPlace(uint64_t transfer, bool written, HostPlace* place) {
  if (transfer == 0) return false;
  return std::ranges::any_of(Sessions(), [&](ClientSession* session) {
    Transfers& transfers = session->transfers();
    return written ? transfers.FindDownload(transfer, place)
                   : transfers.FindUpload(transfer, place);
  });
}

// Of a side that the worker's driver copies itself. Live memory is the program's own.
CUmemorytype TypeOf(const calls::Place& place) {
  if (place.array != 0) return CU_MEMORYTYPE_ARRAY;
  return IsLive(place.address) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
}

void TellSource(const calls::MemcpyNode& node, CUDA_MEMCPY3D* copy) {
  HostPlace host;
  const calls::Place& place = node.source;
  if (FindHostPlace(node.read, false, &host)) {
    copy->srcMemoryType = CU_MEMORYTYPE_HOST;
    copy->srcHost = host.base;
    copy->srcPitch = host.pitch;
    copy->srcHeight = host.pitch != 0 ? host.slice_pitch / host.pitch : host.rows;
    return;
  }
  copy->srcMemoryType = TypeOf(place);
  if (copy->srcMemoryType == CU_MEMORYTYPE_HOST) {
    copy->srcHost = reinterpret_cast<void*>(place.address);
  } else {
    copy->srcDevice = place.address;
  }
  copy->srcArray = reinterpret_cast<CUarray>(place.array);
  copy->srcXInBytes = place.x_bytes;
  copy->srcY = place.y;
  copy->srcZ = place.z;
  copy->srcPitch = place.pitch;
  copy->srcHeight = place.height;
}

void TellDestination(const calls::MemcpyNode& node, CUDA_MEMCPY3D* copy) {
  HostPlace host;
  const calls::Place& place = node.destination;
  if (FindHostPlace(node.write, true, &host)) {
    copy->dstMemoryType = CU_MEMORYTYPE_HOST;
    copy->dstHost = host.base;
    copy->dstPitch = host.pitch;
    copy->dstHeight = host.pitch != 0 ? host.slice_pitch / host.pitch : host.rows;
    return;
  }
  copy->dstMemoryType = TypeOf(place);
  if (copy->dstMemoryType == CU_MEMORYTYPE_HOST) {
    copy->dstHost = reinterpret_cast<void*>(place.address);
  } else {
    copy->dstDevice = place.address;
  }
  copy->dstArray = reinterpret_cast<CUarray>(place.array);
  copy->dstXInBytes = place.x_bytes;
  copy->dstY = place.y;
  copy->dstZ = place.z;
  copy->dstPitch = place.pitch;
  copy->dstHeight = place.height;
}

}  // namespace

void OfferNodeCopy(ClientSession& session, NodeCopy* node, const CUDA_MEMCPY3D& told) {
  if (node->from_program) {
    node->copy.read = session.NewId();
    session.transfers().OfferUpload(node->copy.read, node->source, true);
  }
  if (node->to_program) {
    node->copy.write = session.NewId();
    session.transfers().ExpectDownload(node->copy.write, node->destination, true);
  }
  uint64_t key = node->copy.read != 0 ? node->copy.read : node->copy.write;
  if (key == 0) return;
  NodeCopies& copies = TheNodeCopies();
  base::MutexLock lock(copies.mutex);
  copies.by_transfer[key] = told;
}

void TakeBackNodeCopy(ClientSession& session, const NodeCopy& node) {
  ForgetGraphPart(session, node.copy.read, 0);
  ForgetGraphPart(session, node.copy.write, 0);
}

CUDA_MEMCPY3D ToldOf(const calls::MemcpyNode& node) {
  {
    NodeCopies& copies = TheNodeCopies();
    base::MutexLock lock(copies.mutex);
    auto found = copies.by_transfer.find(node.read != 0 ? node.read : node.write);
    if (found != copies.by_transfer.end()) return found->second;
  }
  CUDA_MEMCPY3D copy{};
  TellSource(node, &copy);
  TellDestination(node, &copy);
  const calls::Place& shape = node.read != 0 ? node.destination : node.source;
  copy.WidthInBytes = shape.width_bytes;
  copy.Height = shape.rows;
  copy.Depth = shape.slices;
  return copy;
}

void ForgetGraphPart(ClientSession& session, uint64_t transfer, uint64_t ticket) {
  if (ticket != 0) DropHostFunction(ticket);
  if (transfer == 0) return;
  session.transfers().DropUpload(transfer);
  session.transfers().DropDownload(transfer);
  NodeCopies& copies = TheNodeCopies();
  base::MutexLock lock(copies.mutex);
  copies.by_transfer.erase(transfer);
}

}  // namespace longwire::shim
