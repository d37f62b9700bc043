#include "server/daemon/sharing/linked_sessions.h"

namespace longwire::daemon {

std::optional<uint64_t> LinkedSessions::Said(uint64_t session, const std::string& tenant,
                                             const links::Token& token) {
  base::MutexLock lock(mutex_);
  const Key key(tenant, token);
  const auto found = first_.find(key);
  if (found != first_.end()) {
    return found->second == session ? std::nullopt : std::optional(found->second);
  }
  size_t& count = tokens_[session];
  if (count >= kMaxTokens) return std::nullopt;
  ++count;
  first_[key] = session;
  return std::nullopt;
}

void LinkedSessions::Ended(uint64_t session) {
  base::MutexLock lock(mutex_);
  if (tokens_.erase(session) == 0) return;
  std::erase_if(first_, [&](const auto& said) { return said.second == session; });
}

}  // namespace longwire::daemon
