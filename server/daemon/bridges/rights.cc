#include "server/daemon/bridges/rights.h"

#include "wire/guards.h"

namespace longwire::daemon {

std::optional<transport::Token> BridgeRights::Offer(uint32_t first_lane) {
  transport::Token secret{};
  if (!NewToken(&secret)) return std::nullopt;
  base::MutexLock lock(mutex_);
  offers_[first_lane] = secret;
  return secret;
}

std::optional<transport::Token> BridgeRights::Offered(uint32_t first_lane) {
  base::MutexLock lock(mutex_);
  auto found = offers_.find(first_lane);
  return found == offers_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<transport::Token> BridgeRights::Ticket(uint32_t first_lane, uint32_t lanes,
                                                     const TokenHash& digest, Now now) {
  transport::Token ticket{};
  if (!NewToken(&ticket)) return std::nullopt;
  base::MutexLock lock(mutex_);
  for (uint32_t lane = first_lane; lane < first_lane + lanes; ++lane) {
    rights_[lane] = {HashToken(ticket), digest, now + kTicketTime};
  }
  return ticket;
}

bool BridgeRights::Take(uint32_t lane, const transport::Token& ticket,
                        const transport::Token& offer, Now now) {
  base::MutexLock lock(mutex_);
  auto found = rights_.find(lane);
  if (found == rights_.end()) return false;
  const Right& right = found->second;
  const bool in_time = now < right.expires || wire::GuardIsOff("bridge_expiry");
  const bool of_session = TokenMatches(offer, right.offer) || wire::GuardIsOff("bridge_session");
  if (!in_time || !of_session || !TokenMatches(ticket, right.ticket)) return false;
  rights_.erase(found);
  return true;
}

}  // namespace longwire::daemon
