#include "server/worker/graph/graph_parts.h"

#include <bit>

#include "base/memory_sizes.h"
#include "server/worker/graph/host_nodes.h"
#include "server/worker/support/down_writer.h"
#include "server/worker/support/helpers.h"

namespace longwire::worker {
namespace {

const void* MemoryOf(const GraphPart& part) {
  return part.read.transfer != 0 ? part.read.data : part.write.data;
}

}  // namespace

PinnedBlock::~PinnedBlock() { store->Give(data, bytes); }

GraphPart::~GraphPart() { store->Gone(*this); }

CUresult GraphPartStore::Allocate(uint64_t bytes, std::shared_ptr<PinnedBlock>* block) {
  if (bytes > kMaxGraphBytes) return CUDA_ERROR_OUT_OF_MEMORY;
  uint64_t size = std::bit_ceil(std::max(bytes, base::kPageBytes));
  base::MutexLock lock(mutex_);
  if (closed_) return CUDA_ERROR_DEINITIALIZED;
  void* data = nullptr;
  if (auto kept = kept_.find(size); kept != kept_.end()) {
    data = kept->second;
    kept_.erase(kept);
    kept_bytes_ -= size;
  } else {
    lock.Unlock();
    if (!uses_.host_memory.Take(HostUse::kGraphs, size)) return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = uses_.driver.cuMemHostAlloc(&data, size, CU_MEMHOSTALLOC_PORTABLE);
    if (result != CUDA_SUCCESS) {
      uses_.host_memory.Give(HostUse::kGraphs, size);
      return result;
    }
  }
  *block = std::make_shared<PinnedBlock>();
  (*block)->store = shared_from_this();
  (*block)->data = static_cast<std::byte*>(data);
  (*block)->bytes = size;
  return CUDA_SUCCESS;
}

void GraphPartStore::Give(std::byte* data, uint64_t bytes) {
  base::MutexLock lock(mutex_);
  if (closed_) return;
  if (kept_bytes_ + bytes <= kMaxKeptBytes) {
    kept_.emplace(bytes, data);
    kept_bytes_ += bytes;
    return;
  }
  uses_.host_memory.Give(HostUse::kGraphs, bytes);
  uses_.helpers.Post(Helpers::kMemoryThread,
                     [&driver = uses_.driver, data] { driver.cuMemFreeHost(data); });
}

GraphPartRef GraphPartStore::NewPart() {
  auto part = std::make_shared<GraphPart>();
  part->store = shared_from_this();
  ++alive_;
  return part;
}

void GraphPartStore::Announce(const GraphPartRef& part) {
  base::MutexLock lock(mutex_);
  if (closed_) return;
  if (const void* memory = MemoryOf(*part)) by_memory_.emplace(memory, part);
  if (part->read.transfer != 0) {
    uses_.transfers.Attach(part->read.transfer, std::shared_ptr<TransferTarget>(part, &part->read));
  }
}

// How many of the things agree that distinguish copies which use the same memory of ours.
static int Likeness(const GraphPart& part, const void* source, const void* destination,
                    uint64_t bytes) {
  const auto is = [](uint64_t address, const void* reported) {
    return address == reinterpret_cast<uint64_t>(reported);
  };
  const bool alike = part.read.transfer != 0 ? is(part.copy.destination.address, destination)
                                             : is(part.copy.source.address, source);
  const bool both = part.read.transfer != 0 && part.write.transfer != 0;
  return (part.copy.bytes == bytes ? 2 : 0) + (alike || both ? 1 : 0);
}

GraphPartRef GraphPartStore::FindCopy(const void* source, const void* destination, uint64_t bytes) {
  std::vector<GraphPartRef> looked_at;  // let go after the lock
  GraphPartRef found;
  int likeness = -1;
  base::MutexLock lock(mutex_);
  for (const void* memory : {source, destination}) {
    auto [from, to] = by_memory_.equal_range(memory);
    for (; from != to; ++from) {
      auto part = from->second.lock();
      if (part == nullptr) continue;
      looked_at.push_back(part);
      bool reads = part->read.transfer == 0 || part->read.data == source;
      bool writes = part->write.transfer == 0 || part->write.data == destination;
      const int alike = Likeness(*part, source, destination, bytes);
      if (!reads || !writes || alike <= likeness) continue;
      found = part;
      likeness = alike;
    }
  }
  return found;
}

void GraphPartStore::Gone(GraphPart& part) {
  --alive_;
  if (part.number != 0) host_nodes::Forget(part.number);
  base::MutexLock lock(mutex_);
  if (closed_) return;
  auto [from, to] = by_memory_.equal_range(MemoryOf(part));
  while (from != to) from = from->second.expired() ? by_memory_.erase(from) : std::next(from);
  if (part.read.transfer != 0) uses_.transfers.Detach(part.read.transfer);
  for (uint64_t transfer : {part.read.transfer, part.write.transfer}) {
    if (transfer != 0) uses_.down.Release(transfer, 0);
  }
  if (part.ticket != 0) uses_.down.Release(0, part.ticket);
}

void GraphPartStore::Close() {
  base::MutexLock lock(mutex_);
  closed_ = true;
}

}  // namespace longwire::worker
