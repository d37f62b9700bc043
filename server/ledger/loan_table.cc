#include "server/ledger/loan_table.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <new>

#include "wire/rings/segment.h"

namespace longwire::keeper {
namespace {

constexpr uint64_t kMagic = 0x6b6f6f62746e656c;

enum class Kind : uint32_t { kFree, kChunk, kBorrowed, kWorker, kPromise };

}  // namespace

struct LoanTable::Slot {
  std::atomic<Kind> kind;        // written last
  std::atomic<uint32_t> number;  // times, version
  std::atomic<uint64_t> worker;
  std::atomic<uint64_t> chunk;
  std::atomic<uint64_t> bytes;  // of the chunk; charged; promised
};

struct LoanTable::Table {
  uint64_t magic = kMagic;
  std::atomic<uint64_t> next_chunk{1};
  std::atomic<uint32_t> used{0};  // no slot from here on was ever in use
  Slot slots[kSlots];
};

std::unique_ptr<LoanTable> LoanTable::Of(wire::Descriptor memory) {
  if (!memory.valid()) return nullptr;
  void* mapped = mmap(nullptr, sizeof(Table), PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
  if (mapped == MAP_FAILED) return nullptr;
  std::unique_ptr<LoanTable> loans(new LoanTable());
  loans->memory_ = std::move(memory);
  loans->table_ = static_cast<Table*>(mapped);
  return loans;
}

// Its zeros are free slots: nothing is written but the head.
std::unique_ptr<LoanTable> LoanTable::Create() {
  auto loans = Of(wire::MakeSegment("longwire-lent", sizeof(Table)));
  if (loans == nullptr) return nullptr;
  loans->table_->magic = kMagic;
  loans->table_->next_chunk = 1;
  return loans;
}

std::unique_ptr<LoanTable> LoanTable::Map(wire::Descriptor memory) {
  if (!wire::IsSegment(memory.get(), sizeof(Table))) return nullptr;
  auto loans = Of(std::move(memory));
  return loans != nullptr && loans->table_->magic == kMagic ? std::move(loans) : nullptr;
}

LoanTable::~LoanTable() {
  if (table_ != nullptr) munmap(table_, sizeof(Table));
}

LoanTable::Content LoanTable::Read() {
  Content content;
  free_.clear();
  chunks_.clear();
  borrowed_.clear();
  workers_.clear();
  promises_.clear();
  used_ = std::min(table_->used.load(), kSlots);
  for (uint32_t i = 0; i < used_; ++i) {
    Slot& slot = table_->slots[i];
    const uint64_t worker = slot.worker, chunk = slot.chunk, bytes = slot.bytes;
    switch (slot.kind.load()) {
      case Kind::kChunk:
        chunks_[chunk] = i;
        content.chunks.push_back({chunk, bytes, worker});
        break;
      case Kind::kBorrowed:
        borrowed_[{chunk, worker}] = i;
        content.borrowed.push_back({chunk, worker, slot.number});
        break;
      case Kind::kWorker:
        workers_[worker] = i;
        content.workers.push_back({worker, bytes, slot.number});
        break;
      case Kind::kPromise:
        promises_[worker] = i;
        content.promises.push_back({worker, bytes});
        break;
      default:
        free_.push_back(i);
    }
  }
  return content;
}

uint64_t LoanTable::next_chunk() const { return table_->next_chunk; }

void LoanTable::SetNextChunk(uint64_t chunk) { table_->next_chunk = chunk; }

bool LoanTable::HasRoom(size_t entries) const { return entries <= kSlots - used_ + free_.size(); }

uint32_t LoanTable::NewSlot() {
  if (free_.empty()) {
    table_->used = ++used_;
    return used_ - 1;
  }
  uint32_t slot = free_.back();
  free_.pop_back();
  return slot;
}

void LoanTable::Clear(uint32_t slot) {
  table_->slots[slot].kind = Kind::kFree;
  free_.push_back(slot);
}

void LoanTable::Lend(const Chunk& chunk) {
  if (!HasRoom(1)) return;
  uint32_t at = NewSlot();
  Slot& slot = table_->slots[at];
  slot.worker = chunk.worker;
  slot.chunk = chunk.chunk;
  slot.bytes = chunk.bytes;
  slot.kind = Kind::kChunk;
  chunks_[chunk.chunk] = at;
}

void LoanTable::HandOver(uint64_t chunk, uint64_t worker) {
  auto found = chunks_.find(chunk);
  if (found != chunks_.end()) table_->slots[found->second].worker = worker;
}

void LoanTable::SetBorrowed(const Borrowed& borrowed) {
  auto found = borrowed_.find({borrowed.chunk, borrowed.worker});
  if (found != borrowed_.end()) {
    if (borrowed.times != 0) {
      table_->slots[found->second].number = borrowed.times;
      return;
    }
    Clear(found->second);
    borrowed_.erase(found);
    return;
  }
  if (borrowed.times == 0 || !HasRoom(1)) return;
  uint32_t at = NewSlot();
  Slot& slot = table_->slots[at];
  slot.worker = borrowed.worker;
  slot.chunk = borrowed.chunk;
  slot.number = borrowed.times;
  slot.kind = Kind::kBorrowed;
  borrowed_[{borrowed.chunk, borrowed.worker}] = at;
}

void LoanTable::Remove(uint64_t chunk) {
  auto found = chunks_.find(chunk);
  if (found == chunks_.end()) return;
  Clear(found->second);
  chunks_.erase(found);
}

LoanTable::Slot& LoanTable::WorkerSlot(uint64_t worker) {
  auto found = workers_.find(worker);
  if (found != workers_.end()) return table_->slots[found->second];
  uint32_t at = NewSlot();
  Slot& slot = table_->slots[at];
  slot.worker = worker;
  slot.bytes = 0;
  slot.number = 0;
  slot.kind = Kind::kWorker;
  workers_[worker] = at;
  return slot;
}

void LoanTable::SetVersion(uint64_t worker, uint32_t version) {
  if (workers_.contains(worker) || HasRoom(1)) WorkerSlot(worker).number = version;
}

void LoanTable::SetCharged(uint64_t worker, uint64_t bytes) {
  if (workers_.contains(worker) || HasRoom(1)) WorkerSlot(worker).bytes = bytes;
}

bool LoanTable::SetPromised(uint64_t worker, uint64_t bytes) {
  auto found = promises_.find(worker);
  if (found != promises_.end()) {
    Clear(found->second);
    promises_.erase(found);
  }
  if (bytes == 0) return true;
  if (!HasRoom(1)) return false;
  uint32_t at = NewSlot();
  Slot& slot = table_->slots[at];
  slot.worker = worker;
  slot.bytes = bytes;
  slot.kind = Kind::kPromise;
  promises_[worker] = at;
  return true;
}

void LoanTable::Forget(uint64_t worker) {
  SetPromised(worker, 0);
  auto found = workers_.find(worker);
  if (found == workers_.end()) return;
  Clear(found->second);
  workers_.erase(found);
}

}  // namespace longwire::keeper
