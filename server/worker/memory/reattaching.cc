// The worker at the successor of its keeper: says what it has, and asks once more what it has no
// answer to.
#include <fcntl.h>

#include <algorithm>

#include "server/worker/memory/keeper_client.h"

namespace longwire::worker {

void KeeperClient::Hold(const std::vector<Chunk>& chunks) {
  base::MutexLock lock(held_mutex_);
  for (const Chunk& chunk : chunks) ++held_[chunk.id];
}

void KeeperClient::LetGo(const std::vector<uint64_t>& chunks) {
  for (uint64_t chunk : chunks) {
    auto found = held_.find(chunk);
    if (found == held_.end() || --found->second != 0) continue;
    held_.erase(found);
    for (auto share = shares_.begin(); share != shares_.end();) {
      bool ends = std::ranges::count(share->second.chunks, chunk) != 0;
      if (ends) files_ -= share->second.files.size();
      share = ends ? shares_.erase(share) : std::next(share);
    }
  }
}

void KeeperClient::HoldShare(const SharedToken& token, std::vector<uint64_t> chunks,
                             std::vector<wire::Descriptor> files) {
  base::MutexLock lock(held_mutex_);
  bool all = files.size() == chunks.size();
  for (uint64_t chunk : chunks) all = all && held_.contains(chunk);
  if (!all || shares_.contains(token) || files_ + files.size() > keeper::kMaxHeldFiles) return;
  files_ += files.size();
  shares_[token] = {std::move(chunks), std::move(files)};
}

void KeeperClient::HoldBorrowed(const SharedToken& token, const std::vector<Chunk>& chunks) {
  std::vector<uint64_t> ids;
  std::vector<wire::Descriptor> files;
  if (chunks.size() > keeper::kChunksPerPacket) return;
  for (const Chunk& chunk : chunks) {
    ids.push_back(chunk.id);
    files.emplace_back(fcntl(chunk.memory.get(), F_DUPFD_CLOEXEC, 0));
    if (!files.back().valid()) return;
  }
  HoldShare(token, std::move(ids), std::move(files));
}

// The lock is held until all is sent: what is returned meanwhile is sent behind it.
void KeeperClient::SendHeld(const keeper::Reattach& ask) {
  base::MutexLock lock(held_mutex_);
  for (const auto& [token, share] : shares_) {
    std::vector<int> files;
    for (const wire::Descriptor& file : share.files) files.push_back(file.get());
    keeper::HeldShare held{ask.keeper, {token[0], token[1]}, share.chunks};
    (void)wire::SendMessage(socket_.get(), message::Pack(held), files);
  }
  std::vector<uint64_t> chunks;
  for (const auto& [chunk, times] : held_) chunks.insert(chunks.end(), times, chunk);
  size_t at = 0;
  do {
    size_t end = std::min(chunks.size(), at + keeper::kMaxChunksPerHeld);
    keeper::Held held{ask.keeper, end < chunks.size(), charged_, {}};
    held.chunks.assign(chunks.begin() + static_cast<ptrdiff_t>(at),
                       chunks.begin() + static_cast<ptrdiff_t>(end));
    Send(held);
    at = end;
  } while (at < chunks.size());
}

void KeeperClient::TakeReattach(const wire::Message& packet) {
  keeper::Reattach ask;
  if (message::Unpack(packet.bytes, &ask) != wire::WireResult::kOk) return;
  ++keepers_;
  DropPage();  // nobody writes it any more
  SendHeld(ask);
  if (!unanswered_.empty()) (void)wire::SendMessage(socket_.get(), unanswered_);
}

}  // namespace longwire::worker
