// Sessions of this host that move, are suspended and restored, and what the pool has to say to
// that.
#include "server/daemon/pool/pool.h"

namespace longwire::daemon {

// Of sessions that were opened before there was a pool another one.
std::string Pool::NumberOf(const ServerSession& session) const {
  const std::string& claim = session.client().claim;
  return claim.empty() ? "0-" + std::to_string(session.id()) : claim;
}

void Pool::Gone(const ServerSession& session) {
  if (host_ != nullptr) host_->Over(NumberOf(session), {session.id()});
}

bool Pool::MayMove(const ServerSession& session, int32_t device, std::string* sentence) {
  *sentence = "this host has not joined the pool yet; try again later";
  return host_ != nullptr && host_->MayMove(NumberOf(session), device, sentence);
}

void Pool::Moved(const ServerSession& session, uint64_t left) {
  std::vector<uint64_t> gone;
  if (left != 0) gone = {left};
  host_->Moved(NumberOf(session), std::move(gone));
}

// As for a program that asks for a place at this host.
bool Pool::Place(const Peer& peer, const std::string& request, std::optional<int32_t> device,
                 PlacedSession* placed, std::string* sentence) {
  *sentence = "this host has not joined the pool yet; try again later";
  if (host_ == nullptr) return false;
  std::string number, ticket;
  if (!AskHere(request, peer, placed->time_left, &number, &ticket, sentence)) return false;
  pool::Claim claim;
  bool again = false;
  if (!host_->Admit(number, ticket, peer.identity, &claim, sentence, &again)) {
    return false;
  }
  placed->number = number;
  placed->devices = {claim.devices().begin(), claim.devices().end()};
  placed->bytes = claim.bytes();
  if (!device || placed->devices == std::vector{*device}) return true;
  // The placer chooses a device of the host; this one it is to have, too, until it is there.
  host_->Opened(number);
  placed->devices = {*device};
  if (host_->MayMove(number, *device, sentence)) return true;
  host_->Over(number, {});
  return false;
}

void Pool::Opened(const PlacedSession& placed) {
  host_->Opened(placed.number);
  host_->Moved(placed.number, {});
}

void Pool::NotOpened(const PlacedSession& placed) {
  host_->Moved(placed.number, {});
  host_->Over(placed.number, placed.tried);
}

}  // namespace longwire::daemon
