// The workers of a keeper that has ended, at its successor: each says what it has before anything
// else that it sends counts.
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "base/poll_set.h"
#include "server/keeper/keeper.h"
#include "server/protocol/reattach.h"
#include "wire/guards.h"

namespace longwire::keeper {
namespace {

// How long a token that nobody knows may still become known.
constexpr std::chrono::seconds kLearns{2};

const bool kHeldFirst = !wire::GuardIsOff("held_first");

}  // namespace

void Keeper::TakeOver(KeeperSession& session, const Again& again) {
  if (quota_ != nullptr) quota_->Assign(session.worker, again.tenant);
  if (again.promised) pool_.AdoptPromise(session.worker, *again.promised);
  session.version = pool_.VersionOf(session.worker);
  const bool knows = session.version >= kReattachSince;
  const bool is_old = !knows && (session.version != 0 || pool_.LeasedBy(session.worker) != 0);
  const int socket = session.socket.get();
  if (is_old || (base::PollOne(socket, POLLIN, std::chrono::milliseconds(0)) & POLLHUP) != 0) {
    // It keeps what it has until it ends, which need not be soon, and gets no more.
    shutdown(socket, SHUT_RDWR);
    session.socket.Reset();
    return;
  }
  session.reattaches = session.again = true;
  Answer(session, message::Pack(Reattach{succession_}));
}

void Keeper::Settle() {
  std::set<uint64_t> living;
  for (const auto& [worker, session] : sessions_) living.insert(worker);
  pool_.Settle(living);
  settled_ = true;
  settled_at_ = std::chrono::steady_clock::now();
}

bool Keeper::IgnoresUntilHeld(KeeperSession& session, wire::Message& message) {
  Held held;
  HeldShare share;
  if (!session.reattaches) {
    // Of a worker whose greeting came first: it had nothing, and says so when it is asked.
    return session.again && (message::Unpack(message.bytes, &held) == wire::WireResult::kOk ||
                             message::Unpack(message.bytes, &share) == wire::WireResult::kOk);
  }
  if (message::Unpack(message.bytes, &share) == wire::WireResult::kOk) {
    size_t files = message.descriptors.size();
    if (share.keeper != succession_ || session.held_files + files > kMaxHeldFiles) return true;
    session.held_files += files;
    if (files != 0) session.held_shares.emplace_back(share, std::move(message.descriptors));
    return true;
  }
  if (message::Unpack(message.bytes, &held) != wire::WireResult::kOk) {
    // One that has not greeted yet may be too old to know what it was asked.
    session.reattaches = session.version != 0;
    return session.reattaches && kHeldFirst;
  }
  if (held.keeper != succession_) return true;  // for a keeper between the first and this one
  session.held.insert(session.held.end(), held.chunks.begin(), held.chunks.end());
  if (held.more) return true;
  session.reattaches = false;
  pool_.Reconcile(session.worker, std::exchange(session.held, {}), held.charged);
  for (auto& [of, files] : std::exchange(session.held_shares, {})) {
    pool_.AdoptShare(session.worker, {of.token[0], of.token[1]}, of.chunks, std::move(files));
  }
  return true;
}

// A worker that has not reattached yet may tell of the token.
bool Keeper::MayLearnOf(const ChunkPool::Token& token) const {
  if (succession_ == 0 || pool_.Knows(token)) return false;
  if (settled_ && std::chrono::steady_clock::now() - settled_at_ > kLearns) return false;
  return !settled_ || std::ranges::any_of(sessions_, [](const auto& entry) {
    return entry.second.reattaches && entry.second.socket.valid();
  });
}

void Keeper::AnswerShared(KeeperSession& session, const Share& share,
                          const ChunkPool::Token& token) {
  std::vector<wire::Descriptor> exported;
  std::vector<int> files;
  for (uint64_t chunk : share.chunks) {
    if (share.chunks.size() > kChunksPerPacket) break;
    if (pool_.Export(chunk, &exported.emplace_back()) != kSuccess) break;
    files.push_back(exported.back().get());
  }
  if (files.size() != share.chunks.size()) files.clear();
  auto packet = message::Pack(Shared{share.request, {token[0], token[1]}});
  // With descriptors only at once: what waits for room in the socket has none.
  bool sent = session.answers.empty() && session.grant == nullptr && !files.empty() &&
              wire::SendMessage(session.socket.get(), packet, files);
  if (!sent) Answer(session, std::move(packet));
}

}  // namespace longwire::keeper
