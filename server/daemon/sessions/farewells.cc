#include "server/daemon/sessions/farewells.h"

namespace longwire::daemon {
namespace {

constexpr size_t kFarewellLimit = 4096;

}  // namespace

void Farewells::Add(uint64_t session, const std::string& identity, const std::string& tenant,
                    std::string sentence, std::chrono::milliseconds time) {
  const auto now = Clock::now();
  std::erase_if(all_, [&](const auto& entry) { return entry.second.until < now; });
  if (sentence.empty() || all_.size() >= kFarewellLimit) return;
  all_[session] = {identity, tenant, std::move(sentence), now + time};
}

std::string Farewells::For(uint64_t session, const Peer& peer) const {
  auto found = all_.find(session);
  if (found == all_.end() || peer.refused()) return {};
  const Farewell& farewell = found->second;
  bool same = farewell.identity == peer.identity && farewell.tenant == peer.tenant->name();
  return same ? farewell.sentence : "";
}

}  // namespace longwire::daemon
