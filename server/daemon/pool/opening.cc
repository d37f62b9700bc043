// How a session is opened in a pool: the server that is asked finds a place, and the server of the
// place opens for the ticket.
#include <algorithm>

#include "base/printable.h"
#include "link/transport/codes.h"
#include "server/daemon/pool/pool.h"
#include "server/daemon/pool/requirements.h"
#include "server/pool/keys.h"

namespace longwire::daemon {
namespace {

// The link gives up after 4.4 s, and the opening itself takes its time.
constexpr std::chrono::milliseconds kPlacePatience{3000};
constexpr std::chrono::milliseconds kRestorePatience{8000};  // nobody but a command waits for it
constexpr size_t kLongestText = 256;
constexpr size_t kNumberBytes = 16;
constexpr size_t kShortestTicket = 16, kLongestTicket = 64;
constexpr int kAvoidedHosts = 64;

bool IsTicket(const std::string& text) {
  return text.size() >= kShortestTicket && text.size() <= kLongestTicket;
}

PoolOpening PlacesOf(const pool::Answer& answer) {
  PoolOpening opening;
  for (const pool::Place& place : answer.places()) {
    transport::Place& to = opening.places.emplace_back();
    to.set_host(place.host());
    to.set_address(place.address());
    to.set_number(place.number());
    to.set_devices(place.devices());
  }
  return opening;
}

bool IsHost(const std::string& text) {
  return !text.empty() && text.size() <= kLongestText && base::Printable(text) == text;
}

}  // namespace

PoolOpening Pool::Refuse(const Peer& peer, const std::string& sentence) {
  PoolOpening opening;
  opening.opened = table_.Refuse(
      peer, nullptr, {transport::kDeviceUnavailable, RefusalReason::kNoDevice, sentence});
  return opening;
}

bool Pool::ReadAsked(Asked* asked, const Peer& peer, std::string* sentence) {
  wire::OpenRequest request;
  wire::Reader reader(asked->bytes);
  *sentence = "the request to open a session cannot be read";
  if (request.Decode(reader) != wire::WireResult::kOk) return false;
  auto stats = table_.warden().GetStatsToOpen(sentence);
  if (!stats) return false;
  DevicesWish wish = daemon::WishOf(*peer.tenant, request.environment, stats->devices.size());
  Requirements told;
  *sentence = wish.refusal;
  if (wish.devices == 0 || !ReadRequirements(request.environment, &told, sentence)) return false;
  pool::Request& to = asked->request;
  to.set_tenant(peer.tenant->name());
  to.set_identity(peer.identity);
  to.set_program(base::Printable(request.program).substr(0, kLongestText));
  to.set_devices(wish.devices);
  to.set_bytes(told.bytes);
  to.mutable_labels()->insert(told.labels.begin(), told.labels.end());
  to.set_ticket_hash(pool::HashOf(asked->ticket));
  for (const std::string& one : asked->further_tickets) to.add_further_hashes(pool::HashOf(one));
  to.set_priority(peer.tenant->priority() == config::latency_critical ? 1 : 0);
  to.set_weight(peer.tenant->weight());
  to.set_wait(told.waits || (told.waits_by_default && peer.tenant->wait() != 0));
  to.set_time_limit(told.time_limit);
  to.set_format(pool::kUsualFormat);
  if (auto spoken = wire::Common(request.versions, asked->link)) {
    to.set_oldest_protocol(spoken->oldest);
    to.set_newest_protocol(spoken->newest);
  }
  return true;
}

PoolOpening Pool::AskForPlace(Asked& asked, const Peer& peer, const std::atomic<bool>& cancelled) {
  std::string sentence;
  if (host_->CutOff()) return OpenAlone(asked, peer, cancelled);
  // Another one of this name may be there, whose answers these would be.
  if (!host_->AwaitJoined(&sentence)) return Refuse(peer, sentence);
  if (!table_.entrance().AwaitOpening(peer.identity, cancelled, &sentence) ||
      !ReadAsked(&asked, peer, &sentence)) {
    return Refuse(peer, sentence);
  }
  pool::Answer answer;
  const auto result = front_->Place(asked.number, asked.request, Clock::now() + kPlacePatience,
                                    cancelled, &answer, &sentence);
  if (result == pool::FrontPart::Result::kRefused) return Refuse(peer, sentence);
  if (result == pool::FrontPart::Result::kWaits) {
    // No refusal, and no line in the log each few seconds: the queue is in status.
    PoolOpening waits;
    waits.opened.reply.code = transport::kDeviceUnavailable;
    waits.opened.reply.sentence = answer.place() == 0
                                      ? "the pool's placer has not answered yet"
                                      : "place " + std::to_string(answer.place()) + " of " +
                                            std::to_string(answer.waiting()) +
                                            " in the pool's queue; " + answer.reason();
    return waits;
  }
  if (answer.places_size() != 0) return PlacesOf(answer);
  if (answer.host() == config_.host()) return OpenPlaced(asked, peer, cancelled);
  PoolOpening opening;
  opening.place.set_host(answer.host());
  opening.place.set_address(answer.address());
  return opening;
}

// The placer counts it against all limits.
bool Pool::AskFor(const std::string& request, const Peer& peer, uint64_t time_left, Asked* asked,
                  pool::Answer* answer, std::string* sentence) {
  if (!host_->AwaitJoined(sentence)) return false;
  asked->bytes = std::as_bytes(std::span(request));
  asked->link = wire::SpokenVersions();
  asked->number = pool::RandomHex(kNumberBytes);
  asked->ticket = pool::RandomHex(kNumberBytes);
  *sentence = "the server has no random bytes";
  if (asked->ticket.empty() || !ReadAsked(asked, peer, sentence)) return false;
  asked->request.set_wait(false);
  if (time_left != 0) asked->request.set_time_limit(time_left);
  const std::atomic<bool> cancelled{false};
  const auto result = front_->Place(asked->number, asked->request, Clock::now() + kRestorePatience,
                                    cancelled, answer, sentence);
  if (result == pool::FrontPart::Result::kWaits) *sentence = "the pool did not answer in time";
  return result == pool::FrontPart::Result::kPlaced;
}

// What the pool counts nobody can give who does not reach it.
PoolOpening Pool::OpenAlone(Asked& asked, const Peer& peer, const std::atomic<bool>& cancelled) {
  std::string sentence;
  if (!table_.entrance().AwaitOpening(peer.identity, cancelled, &sentence) ||
      !ReadAsked(&asked, peer, &sentence)) {
    return Refuse(peer, sentence);
  }
  for (const config::PoolLimit& limit : config_.limits()) {
    if (limit.tenant() != peer.tenant->name() || !limit.has_sessions()) continue;
    return Refuse(peer,
                  "this host is cut off from the pool's etcd, and the sessions of the tenant "
                  "'" +
                      limit.tenant() +
                      "' are counted over the whole pool; try another server, or later");
  }
  pool::Claim claim;
  std::string number;
  const std::string policy = config::Pool::Rule_Name(config_.placement());
  if (!host_->OpenAlone(asked.request, policy, &number, &claim, &sentence)) {
    return Refuse(peer, sentence);
  }
  return OpenAt(asked, peer, cancelled, number, claim);
}

PoolOpening Pool::OpenAt(const Asked& asked, const Peer& peer, const std::atomic<bool>& cancelled,
                         const std::string& number, const pool::Claim& claim) {
  PlacedSession placed;
  placed.number = number;
  placed.devices = {claim.devices().begin(), claim.devices().end()};
  placed.bytes = claim.bytes();
  placed.alone = claim.alone();
  PoolOpening opening;
  opening.opened = table_.Open(asked.bytes, asked.link, peer, cancelled, &placed);
  if (opening.opened.session != nullptr) {
    host_->Opened(number);
  } else {
    host_->Over(number, placed.tried);
  }
  return opening;
}

PoolOpening Pool::OpenPlaced(Asked& asked, const Peer& peer, const std::atomic<bool>& cancelled) {
  pool::Claim claim;
  std::string sentence;
  bool again = false;
  if (!host_->Admit(asked.number, asked.ticket, peer.identity, &claim, &sentence, &again)) {
    PoolOpening refused = Refuse(peer, sentence);
    refused.place_again = again;
    return refused;
  }
  PoolOpening opening;
  if (claim.has_from()) {
    host_->Over(asked.number, {});
    opening = Refuse(peer, "that place is for a session that moves there");
  } else if (claim.tenant() == peer.tenant->name()) {
    opening = OpenAt(asked, peer, cancelled, asked.number, claim);
  } else {
    host_->Over(asked.number, {});
    opening = Refuse(peer, "'" + peer.identity + "' is of the tenant '" + claim.tenant() +
                               "' at the server that was asked, and of '" + peer.tenant->name() +
                               "' here; the servers of a pool need the same tenants");
  }
  // There may be room elsewhere; not for what no server takes.
  opening.place_again = opening.opened.session == nullptr &&
                        opening.opened.reply.code == transport::kDeviceUnavailable;
  return opening;
}

PoolOpening Pool::Open(std::span<const std::byte> request, wire::VersionRange link,
                       const Peer& peer, const transport::PlaceRequest* place,
                       const std::atomic<bool>& cancelled) {
  PoolOpening opening;
  wire::OpenRequest read;
  wire::Reader reader(request);
  // The table refuses what it would refuse without a pool.
  if (peer.refused() || request.size() > wire::kMaxOpenBytes ||
      read.Decode(reader) != wire::WireResult::kOk ||
      !wire::Common(read.versions, wire::SpokenVersions())) {
    opening.opened = table_.Open(request, link, peer, cancelled);
    return opening;
  }
  Asked asked{request, link, {}, {}, {}, {}};
  if (place == nullptr) {
    asked.number = pool::RandomHex(kNumberBytes);
    asked.ticket = pool::RandomHex(kNumberBytes);
    asked.request.set_only(config_.host());
    if (asked.ticket.empty()) return Refuse(peer, "the server has no random bytes");
    return AskForPlace(asked, peer, cancelled);
  }
  asked.number = place->number();
  asked.ticket = place->ticket();
  asked.further_tickets = {place->further_tickets().begin(), place->further_tickets().end()};
  if (!pool::IsNumber(asked.number) || !IsTicket(asked.ticket) ||
      place->avoid_size() > kAvoidedHosts || !std::ranges::all_of(place->avoid(), IsHost) ||
      asked.further_tickets.size() >= wire::kMaxServers ||
      !std::ranges::all_of(asked.further_tickets, IsTicket)) {
    return Refuse(peer,
                  "the request for a place in the pool cannot be read; upgrade "
                  "longwire-link on the client's host");
  }
  if (place->placed()) {
    std::string sentence;
    if (table_.entrance().AwaitOpening(peer.identity, cancelled, &sentence)) {
      return OpenPlaced(asked, peer, cancelled);
    }
    return Refuse(peer, sentence);
  }
  for (const std::string& host : place->avoid()) asked.request.add_avoid(host);
  return AskForPlace(asked, peer, cancelled);
}

PoolOpening OpenSession(Pool* pool, SessionTable& table, std::span<const std::byte> request,
                        wire::VersionRange link, const Peer& peer,
                        const transport::PlaceRequest* place, const std::atomic<bool>& cancelled) {
  PoolOpening opening;
  if (pool != nullptr) {
    opening = pool->Open(request, link, peer, place, cancelled);
  } else {
    opening.opened = table.Open(request, link, peer, cancelled);
  }
  wire::OpenReply& reply = opening.opened.reply;
  if (reply.code == transport::kDeviceUnavailable && !peer.refused()) {
    // In seconds, rounded up: a wait is not none.
    constexpr uint64_t kSecond = 1'000'000'000;
    reply.wait = peer.tenant->wait() / kSecond + (peer.tenant->wait() % kSecond != 0 ? 1 : 0);
  }
  return opening;
}

}  // namespace longwire::daemon
