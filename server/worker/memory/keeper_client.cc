#include "server/worker/memory/keeper_client.h"

#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/cuda_codes.h"
#include "base/poll_set.h"
#include "server/protocol/hello.h"
#include "wire/guards.h"

namespace longwire::worker {
namespace {

// A keeper that scrubs memory first may take this long.
constexpr std::chrono::seconds kAnswerTime{30};

constexpr const char* kSilent = "the keeper of the device's memory does not answer";
constexpr const char* kGone =
    "the keeper of the device's memory has ended: this session keeps what it has and gets no more; "
    "start the program again when the server lends the device again";

}  // namespace

int KeeperClient::Greet(std::string* sentence) {
  if (!socket_.valid() || !wire::SpeaksRanges()) return 0;
  base::MutexLock lock(mutex_);
  const wire::VersionRange ours = wire::SpokenVersions();
  keeper::Borrow hello{next_request_++, {message::kHelloToken, message::TokenOf(ours)}};
  std::optional<wire::VersionRange> theirs;
  if (Ask(hello)) theirs = HearHello(hello.request);
  Answered(0);
  if (!theirs) return 0;  // the first lease says so, too
  version_ = wire::NewestCommon(ours, *theirs);
  charges_ = version_ >= keeper::kChargesSince;
  if (version_ != 0) return 0;
  *sentence = wire::RefusalOf({"longwire-worker", "longwire-worker", ours},
                              {"longwire-keeper", "longwire-keeper", *theirs});
  return base::kSystemDriverMismatch;
}

std::optional<wire::VersionRange> KeeperClient::HearHello(uint64_t request) {
  while (auto packet = wire::ReceiveMessage(socket_.get(), kAnswerTime)) {
    keeper::Refuse refuse;
    if (auto versions = message::HelloIn(packet->bytes)) return versions;
    if (message::KindOf(packet->bytes) == keeper::Reattach::kKind) {
      TakeReattach(*packet);
      continue;
    }
    bool refused = message::Unpack(packet->bytes, &refuse) == wire::WireResult::kOk;
    if (refused && refuse.request == request) return wire::kWithoutRange;
    early_.push_back(std::move(*packet));
  }
  return std::nullopt;
}

void KeeperClient::Listen(OnReclaim reclaim, OnSwap swap, std::function<void()> gone) {
  if (!socket_.valid() || listener_.joinable()) return;
  on_reclaim_ = std::move(reclaim);
  on_swap_ = std::move(swap);
  on_gone_ = std::move(gone);
  stop_.Reset(eventfd(0, EFD_CLOEXEC));
  {
    base::MutexLock lock(mutex_);
    for (wire::Message& packet : early_) TakeQuestion(packet);
    early_.clear();
  }
  listener_ = std::thread([this] { ListenLoop(); });
}

void KeeperClient::StopListening() {
  if (!listener_.joinable()) return;
  uint64_t one = 1;
  (void)!write(stop_.get(), &one, sizeof(one));
  listener_.join();
}

// Wakes up for answers, too: then it waits for the thread whose they are, and finds nothing.
void KeeperClient::ListenLoop() {
  base::PollSet set;
  set.Add(socket_.get());
  base::PollSet::Entry stop = set.Add(stop_.get());
  bool closed = false;
  while (!closed) {
    if (set.Wait(std::chrono::milliseconds(-1)) < 0 && errno != EINTR) return;
    if (set.Ready(stop)) return;
    base::MutexLock lock(mutex_);
    Hear(std::chrono::milliseconds(0), &closed);
  }
  DropPage();
  if (on_gone_) on_gone_();
}

std::optional<wire::Message> KeeperClient::Hear(std::chrono::milliseconds patience, bool* closed) {
  while (true) {
    auto packet = wire::ReceiveMessage(socket_.get(), patience, closed);
    if (!packet || !TakeQuestion(*packet)) return packet;
  }
}

bool KeeperClient::TakeQuestion(wire::Message& packet) {
  uint32_t kind = message::KindOf(packet.bytes);
  if (kind == keeper::SwapOut::kKind || kind == keeper::SwapReturned::kKind ||
      kind == keeper::SwapWatch::kKind) {
    if (on_swap_) on_swap_(std::move(packet));
    return true;
  }
  if (kind == keeper::Reattach::kKind) {
    TakeReattach(packet);
    if (on_swap_) on_swap_(std::move(packet));
    return true;
  }
  if (kind == keeper::Filled::kKind) {
    keeper::Filled filled;
    if (message::Unpack(packet.bytes, &filled) != wire::WireResult::kOk) return true;
    auto fill = fills_.find(filled.request);
    if (fill != fills_.end()) fill->second.code = filled.code;
    return true;
  }
  if (kind != keeper::Reclaim::kKind) return false;
  keeper::Reclaim reclaim;
  if (message::Unpack(packet.bytes, &reclaim) == wire::WireResult::kOk && on_reclaim_) {
    on_reclaim_(reclaim);
  }
  return true;
}

int KeeperClient::Lease(const std::vector<uint64_t>& bytes, bool spare, std::vector<Chunk>* chunks,
                        std::string* sentence) {
  if (bytes.empty() || bytes.size() > keeper::kMaxChunksPerLease) return 1;
  base::MutexLock lock(mutex_);
  keeper::Lease lease;
  lease.request = next_request_++;
  lease.bytes = bytes;
  lease.spare = spare;
  *sentence = kSilent;
  if (!Ask(lease)) return Answered(Gone(sentence));
  int code = Answered(Receive(lease.request, chunks, sentence));
  if (code == base::kDeviceUnavailable && IsGone()) return Gone(sentence);
  return code != 0 || chunks->size() == bytes.size() ? code : base::kDeviceUnavailable;
}

int KeeperClient::Receive(uint64_t request, std::vector<Chunk>* chunks, std::string* sentence) {
  uint64_t keeper = keepers_;
  while (true) {
    auto packet = Hear(kAnswerTime);
    if (!packet) return base::kDeviceUnavailable;
    // What one keeper has sent in part, its successor sends as a whole.
    if (std::exchange(keeper, keepers_) != keepers_) chunks->clear();
    if (message::KindOf(packet->bytes) == keeper::Refuse::kKind) {
      keeper::Refuse refuse;
      if (message::Unpack(packet->bytes, &refuse) != wire::WireResult::kOk)
        return base::kDeviceUnavailable;
      if (refuse.request != request) continue;
      *sentence = refuse.sentence;
      return refuse.code != 0 ? refuse.code : base::kOutOfMemory;
    }
    keeper::Grant grant;
    if (message::Unpack(packet->bytes, &grant) != wire::WireResult::kOk)
      return base::kDeviceUnavailable;
    if (grant.request != request) continue;
    bool whole = grant.chunks.size() == packet->descriptors.size();
    if (!whole && !wire::kPlantedBug) return base::kDeviceUnavailable;
    for (size_t i = 0; i < grant.chunks.size(); ++i) {
      chunks->push_back(
          {grant.chunks[i].chunk, grant.chunks[i].bytes, std::move(packet->descriptors[i])});
    }
    if (grant.more) continue;
    Hold(*chunks);
    ++had_;
    return 0;
  }
}

int KeeperClient::Borrow(const SharedToken& token, std::vector<Chunk>* chunks,
                         std::string* sentence) {
  base::MutexLock lock(mutex_);
  keeper::Borrow borrow{next_request_++, {token[0], token[1]}};
  *sentence = kSilent;
  if (!Ask(borrow)) return Answered(base::kDeviceUnavailable);
  int code = Answered(Receive(borrow.request, chunks, sentence));
  if (code == 0) HoldBorrowed(token, *chunks);
  return code;
}

int KeeperClient::Share(const std::vector<uint64_t>& chunks, SharedToken* token,
                        std::string* sentence) {
  *sentence = kSilent;
  base::MutexLock lock(mutex_);
  keeper::Share share{next_request_++, chunks};
  return Answered(Ask(share) ? HearShared(share, token, sentence) : base::kDeviceUnavailable);
}

int KeeperClient::HearShared(const keeper::Share& share, SharedToken* token,
                             std::string* sentence) {
  keeper::Shared shared;
  keeper::Refuse refuse;
  while (auto packet = Hear(kAnswerTime)) {
    if (message::Unpack(packet->bytes, &refuse) == wire::WireResult::kOk &&
        refuse.request == share.request) {
      *sentence = refuse.sentence;
      return refuse.code;
    }
    if (message::Unpack(packet->bytes, &shared) == wire::WireResult::kOk &&
        shared.request == share.request) {
      *token = {shared.token[0], shared.token[1]};
      HoldShare(*token, share.chunks, std::move(packet->descriptors));
      return 0;
    }
  }
  return base::kDeviceUnavailable;
}

int KeeperClient::Info(keeper::Info* info) {
  base::MutexLock lock(mutex_);
  keeper::GetInfo get;
  get.request = next_request_++;
  const uint64_t changes = ChangesSaid();
  return Answered(Ask(get) ? HearInfo(get.request, changes, info) : InfoOfGone(info));
}

int KeeperClient::HearInfo(uint64_t request, uint64_t changes, keeper::Info* info) {
  while (auto packet = Hear(kAnswerTime)) {
    if (message::Unpack(packet->bytes, info) != wire::WireResult::kOk) continue;
    if (info->request != request) continue;
    last_info_ = *info;
    TakePage(*packet, changes);
    return 0;
  }
  return IsGone() ? InfoOfGone(info) : base::kDeviceUnavailable;
}

int KeeperClient::Charge(uint64_t bytes, uint64_t most, uint64_t* charged, std::string* sentence) {
  *charged = bytes;
  if (!charges_) return 0;
  base::MutexLock lock(mutex_);
  keeper::Charge charge{next_request_++, bytes, most};
  return Answered(Ask(charge) ? HearCharged(charge, charged, sentence) : 0);
}

int KeeperClient::HearCharged(const keeper::Charge& charge, uint64_t* charged,
                              std::string* sentence) {
  keeper::Refuse refuse;
  keeper::Charged answer;
  while (auto packet = Hear(kAnswerTime)) {
    if (message::Unpack(packet->bytes, &refuse) == wire::WireResult::kOk &&
        refuse.request == charge.request) {
      *sentence = refuse.sentence;
      return refuse.code != 0 ? refuse.code : base::kOutOfMemory;
    }
    if (message::Unpack(packet->bytes, &answer) == wire::WireResult::kOk &&
        answer.request == charge.request && answer.bytes >= charge.bytes) {
      *charged = answer.bytes;
      ++had_;
      base::MutexLock lock(held_mutex_);
      charged_ += answer.bytes;
      return 0;
    }
  }
  if (IsGone()) return 0;
  *sentence = kSilent;
  return base::kDeviceUnavailable;
}

void KeeperClient::Uncharge(uint64_t bytes) {
  if (!charges_ || bytes == 0) return;
  base::MutexLock lock(held_mutex_);
  charged_ -= std::min(charged_, bytes);
  ++said_;
  Send(keeper::Uncharge{bytes});
}

// The other end is closed, as far as this one can tell without waiting.
bool KeeperClient::IsGone() const {
  short events = base::PollOne(socket_.get(), POLLIN, std::chrono::milliseconds(0));
  return (events & (POLLHUP | POLLERR)) != 0;
}

int KeeperClient::Gone(std::string* sentence) {
  *sentence = kGone;
  return base::kOutOfMemory;
}

// Nothing of the device is free any more, for this session.
int KeeperClient::InfoOfGone(keeper::Info* info) const {
  *info = last_info_;
  info->free = 0;
  return 0;
}

void KeeperClient::Return(const std::vector<uint64_t>& chunks) {
  // A packet holds fewer than 16 Ki ids; the keeper does not answer.
  constexpr size_t kPerPacket = 8192;
  base::MutexLock lock(held_mutex_);
  LetGo(chunks);
  ++said_;
  for (size_t at = 0; at < chunks.size(); at += kPerPacket) {
    keeper::Return message;
    auto end = std::min(chunks.size(), at + kPerPacket);
    message.chunks.assign(chunks.begin() + at, chunks.begin() + end);
    Send(message);
  }
}

void KeeperClient::Note(keeper::MemoryEventKind kind, uint64_t bytes) {
  // Dropped where it would have to wait: the log thread maps.
  SendNow(message::Pack(keeper::Note{static_cast<uint32_t>(kind), bytes}));
}

void KeeperClient::SendNow(const std::vector<std::byte>& packet) {
  if (socket_.valid()) {
    (void)!send(socket_.get(), packet.data(), packet.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  }
}

void KeeperClient::Reclaimed(const keeper::Reclaimed& answer) { Send(answer); }

}  // namespace longwire::worker
