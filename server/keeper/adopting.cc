// What a keeper finds when it follows one that was killed: the chunks that workers have. They are
// counted and taken back like its own; but the driver lets nobody export a chunk but its maker. So
// they are not swapped, only what is shared is lent to somebody else, by descriptors that workers
// kept, and they go to the driver when they are returned.
#include <fcntl.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "server/keeper/chunk_pool.h"
#include "wire/guards.h"

namespace longwire::keeper {
namespace {

const bool kChecksShares = !wire::GuardIsOff("held_shares");

}  // namespace

void ChunkPool::Adopt() {
  LoanTable& loans = *options_.loans;
  LoanTable::Content content = loans.Read();
  next_chunk_ = loans.next_chunk();
  for (const LoanTable::Chunk& entry : content.chunks) {
    Chunk& chunk = chunks_[entry.chunk];
    chunk.bytes = entry.bytes;
    chunk.worker = entry.worker;
    chunk.state = State::kClean;
    chunk.taken = true;
    chunk.adopted = true;
    Worker& holder = workers_[entry.worker];
    holder.lent.insert(entry.chunk);
    holder.leased += entry.bytes;
    holder.leased_peak = holder.leased;
    leased_ += entry.bytes;
    created_ += entry.bytes;
  }
  leased_peak_ = leased_;
  for (const LoanTable::Borrowed& entry : content.borrowed) {
    auto chunk = chunks_.find(entry.chunk);
    if (chunk == chunks_.end()) {  // its keeper ended between two lines
      loans.SetBorrowed({entry.chunk, entry.worker, 0});
      continue;
    }
    chunk->second.borrowers[entry.worker] = entry.times;
    Worker& holder = workers_[entry.worker];
    for (uint32_t i = 0; i < entry.times; ++i) holder.borrowed.insert(entry.chunk);
  }
  for (const LoanTable::Worker& entry : content.workers) {
    Worker& worker = workers_[entry.worker];
    worker.version = entry.version;
    worker.charged = entry.charged;
    charged_ += entry.charged;
  }
  for (auto& [id, worker] : workers_) worker.owed = worker.leased + worker.charged;
  for (const LoanTable::Promise& entry : content.promises) {
    workers_[entry.worker].promised = entry.bytes;
    promised_ += entry.bytes;
  }
}

void ChunkPool::Reconcile(uint64_t worker, std::vector<uint64_t> chunks, uint64_t charged) {
  auto holder = workers_.find(worker);
  if (holder == workers_.end()) return;
  std::vector<uint64_t> known(holder->second.lent.begin(), holder->second.lent.end());
  known.insert(known.end(), holder->second.borrowed.begin(), holder->second.borrowed.end());
  std::ranges::sort(known);
  std::ranges::sort(chunks);
  std::vector<uint64_t> missing;
  std::ranges::set_difference(known, chunks, std::back_inserter(missing));
  Return(worker, missing);
  if (charged < holder->second.charged) Uncharge(worker, holder->second.charged - charged);
}

void ChunkPool::AdoptShare(uint64_t worker, const Token& token, std::span<const uint64_t> chunks,
                           std::vector<wire::Descriptor> files) {
  bool all = !chunks.empty() && chunks.size() == files.size() &&
             std::ranges::all_of(chunks, [&](uint64_t id) {
               return Has(worker, id) || (!kChecksShares && chunks_.contains(id));
             });
  if (!all) return;
  for (size_t i = 0; i < chunks.size(); ++i) {
    Chunk& chunk = chunks_.at(chunks[i]);
    chunk.shared = true;
    if (chunk.adopted && !chunk.file.valid()) chunk.file = std::move(files[i]);
  }
  shared_.AddKnown(worker, chunks, token);
}

int ChunkPool::ExportAdopted(const Chunk& chunk, wire::Descriptor* file) {
  if (!chunk.file.valid()) return kNotSupported;
  file->Reset(fcntl(chunk.file.get(), F_DUPFD_CLOEXEC, 0));
  return file->valid() ? kSuccess : kNotSupported;
}

void ChunkPool::Settle(const std::set<uint64_t>& living) {
  std::vector<uint64_t> gone;
  for (const auto& [worker, state] : workers_) {
    if (!living.contains(worker)) gone.push_back(worker);
  }
  for (uint64_t worker : gone) Gone(worker);
  if (options_.quota == nullptr) return;
  std::map<uint64_t, uint64_t> bytes;
  for (const auto& [worker, state] : workers_) {
    bytes[worker] = std::max(state.promised, state.leased + state.swapped + state.charged);
  }
  options_.quota->SetCharged(bytes);
}

void ChunkPool::SetVersion(uint64_t worker, uint32_t version) {
  if (options_.loans != nullptr) options_.loans->SetVersion(worker, version);
}

uint32_t ChunkPool::VersionOf(uint64_t worker) const {
  auto found = workers_.find(worker);
  return found == workers_.end() ? 0 : found->second.version;
}

bool ChunkPool::LoansAreFull(LeaseInProgress* lease, size_t entries) {
  if (options_.loans == nullptr || options_.loans->HasRoom(entries)) return false;
  Refused(lease, kOutOfMemory, "the device's table of loans has no room for more");
  return true;
}

void ChunkPool::WriteBorrowed(uint64_t id, uint64_t worker) {
  if (options_.loans == nullptr) return;
  const auto& borrowers = chunks_.at(id).borrowers;
  auto found = borrowers.find(worker);
  options_.loans->SetBorrowed({id, worker, found == borrowers.end() ? 0 : found->second});
}

}  // namespace longwire::keeper
