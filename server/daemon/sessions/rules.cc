// The rules of the configuration on their way to the workers (server/rules/rule.h).
#include "link/transport/log.h"
#include "server/daemon/sessions/session_table.h"
#include "server/rules/rules_of.h"

namespace longwire::daemon {

using transport::Log;
using transport::LogLevel;

// Before its first call: it may be one that is denied.
void SessionTable::GiveRules(ServerSession& session, gates::GatePage& page) {
  const ClientDescription& client = session.client();
  auto rules = rules::RulesOf(*live_.Get(), client.peer.tenant->name(), client.program);
  if (rules.rules.empty()) return;
  page.has_rules() = 1;
  session.SetRules(message::Pack(rules));
}

// Also none: those that it has may have been taken away.
void SessionTable::SendRules(const config::Config& config, const ServerSession& session) {
  const ClientDescription& client = session.client();
  const auto rules =
      message::Pack(rules::RulesOf(config, client.peer.tenant->name(), client.program));
  if (wire::SendMessage(session.ControlSocket().get(), rules)) return;
  Log(LogLevel::kWarning, session.subject(), "its worker does not take the rules; it is ending");
}

}  // namespace longwire::daemon
