// Sessions of this host that move, are suspended and restored, and what the pool has to say to
// that.
#include "base/printable.h"
#include "link/certificates/address.h"
#include "server/daemon/pool/pool.h"
#include "server/pool/keys.h"
#include "wire/guards.h"

namespace longwire::daemon {
namespace {

const char* const kNotJoined = "this host has not joined the pool yet; try again later";

bool IsCalled(const std::string& host, const pool::HostEntry& entry, const std::string& text) {
  std::string problem;
  const auto theirs = transport::ParseAddress(entry.host.address(), &problem);
  const auto asked = transport::ParseAddress(text, &problem);
  // Commands add the port to what may be the host's name in the pool.
  if (asked && asked->host == host && asked->port == wire::kDefaultPort) return true;
  return theirs && asked && theirs->Text() == asked->Text();
}

bool Takes(const pool::HostEntry& entry) {
  return entry.host_created != 0 && entry.capacity.takes_moves() && !entry.capacity.cordoned() &&
         !entry.withdrawn;
}

// Where a session may go: the one host that is asked for, or all that take sessions. False with a
// sentence.
bool ChooseHosts(const pool::Directory& directory, const std::string& own, const FarWish& wish,
                 pool::Request* request, std::string* sentence) {
  bool any = false;
  for (const auto& [name, entry] : directory.hosts) {
    if (!wish.to.empty() && !IsCalled(name, entry, wish.to)) continue;
    if (name == own) {
      *sentence = "it is at that host already";
      if (!wish.to.empty()) return false;
      request->add_avoid(name);
    } else if (!Takes(entry) || wish.avoid.contains(name)) {
      *sentence = "the host '" + name +
                  "' is not in the pool just now, is taken out of service, or takes no sessions of "
                  "other hosts: its administrator can add pool to moves_from";
      if (!wish.to.empty()) return false;
      request->add_avoid(name);
    } else {
      any = true;
      if (!wish.to.empty()) request->set_only(name);
    }
  }
  if (any) return true;
  *sentence = wish.to.empty() ? "no other host of the pool takes it (moves_from)"
                              : "the pool has no host '" + base::Printable(wish.to) +
                                    "'; sessions of a pool move to its hosts alone "
                                    "(longwire status --pool)";
  return false;
}

}  // namespace

// Of sessions that were opened before there was a pool another one.
std::string Pool::NumberOf(const ServerSession& session) const {
  const std::string& claim = session.client().claim;
  return claim.empty() ? "0-" + std::to_string(session.id()) : claim;
}

void Pool::Gone(const ServerSession& session) {
  if (host_ != nullptr) host_->Over(NumberOf(session), {session.id()});
}

bool Pool::MayMove(const ServerSession& session, int32_t device, std::string* sentence) {
  *sentence = kNotJoined;
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
  *sentence = kNotJoined;
  if (host_ == nullptr) return false;
  Asked asked;
  pool::Answer answer;
  asked.request.set_only(config_.host());
  if (!AskFor(request, peer, placed->time_left, &asked, &answer, sentence)) return false;
  pool::Claim claim;
  bool again = false;
  if (!host_->Admit(asked.number, asked.ticket, peer.identity, &claim, sentence, &again)) {
    return false;
  }
  placed->number = asked.number;
  return PutOn(device, claim, placed, sentence);
}

bool Pool::PutOn(std::optional<int32_t> device, const pool::Claim& claim, PlacedSession* placed,
                 std::string* sentence) {
  placed->devices = {claim.devices().begin(), claim.devices().end()};
  placed->bytes = claim.bytes();
  if (!device || placed->devices == std::vector{*device}) return true;
  // The placer chooses a device of the host; this one it is to have, too, until it is there.
  host_->Opened(placed->number);
  placed->devices = {*device};
  if (host_->MayMove(placed->number, *device, sentence)) return true;
  host_->Over(placed->number, {});
  return false;
}

bool Pool::PlaceElsewhere(const ServerSession& session, const std::string& request,
                          const FarWish& wish, FarPlace* place, std::string* sentence) {
  *sentence = kNotJoined;
  if (host_ == nullptr) return false;
  auto directory = reader_->Read(sentence);
  if (directory == nullptr) return false;
  Asked asked;
  if (!ChooseHosts(*directory, config_.host(), wish, &asked.request, sentence)) return false;
  place->from_host = config_.host();
  place->from_number = NumberOf(session);
  asked.request.mutable_from()->set_host(place->from_host);
  asked.request.mutable_from()->set_number(place->from_number);
  pool::Answer answer;
  if (!AskFor(request, session.client().peer, wish.time_left, &asked, &answer, sentence)) {
    return false;
  }
  place->host = answer.host();
  place->address = answer.address();
  place->number = asked.number;
  place->ticket = asked.ticket;
  return true;
}

bool Pool::TakePlace(const Peer& peer, const FarPlace& place, std::optional<int32_t> device,
                     PlacedSession* placed, std::string* sentence) {
  *sentence = kNotJoined;
  if (host_ == nullptr) return false;
  pool::Claim claim;
  bool again = false;
  if (!pool::IsNumber(place.number) ||
      !host_->Admit(place.number, place.ticket, peer.identity, &claim, sentence, &again)) {
    return false;
  }
  // Who knows the ticket of such a claim has it from the host that asked for it. One of a program
  // that has just been placed is no permission to bring a session.
  const bool is_move = claim.from().host() == place.from_host &&
                       claim.from().number() == place.from_number && !place.from_number.empty();
  *sentence = "the pool has promised no place here to the session '" + place.from_number +
              "' of its host '" + base::Printable(place.from_host) + "'";
  if ((!is_move && !wire::GuardIsOff("moves_place")) || claim.tenant() != peer.tenant->name()) {
    host_->Over(place.number, {});
    return false;
  }
  placed->number = place.number;
  return PutOn(device, claim, placed, sentence);
}

bool Pool::ShallEmpty() {
  uint64_t left = 0;
  const auto told = host_->withdrawal(&left);
  std::string sentence;
  if (!told || !told->drain() || !host_->joined(&sentence)) return false;
  const auto directory = reader_->Read(&sentence);
  pool::Request ignored;
  return directory != nullptr && ChooseHosts(*directory, config_.host(), {}, &ignored, &sentence);
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
