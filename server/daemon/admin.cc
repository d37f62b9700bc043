#include "server/daemon/admin.h"

#include <unistd.h>

#include <algorithm>

#include "link/transport/log.h"
#include "wire/guards.h"

namespace longwire::daemon {
namespace {

using transport::Log;
using transport::LogLevel;

std::string NameOf(const Peer& peer) {
  return peer.identity.empty() ? peer.address : peer.identity + " (" + peer.address + ")";
}

transport::AdminReply Refuse(const std::string& sentence) {
  transport::AdminReply reply;
  reply.add_sentences(sentence);
  return reply;
}

}  // namespace

bool MayAdminister(const Peer& peer, std::string* sentence) {
  if (wire::GuardIsOff("admin")) return true;
  if (peer.uid && (*peer.uid == geteuid() || *peer.uid == 0)) return true;
  if (peer.refused()) {
    *sentence = peer.refusal;
    return false;
  }
  // Everybody's tenant names nobody.
  bool named = std::ranges::count(peer.tenant->identities(), peer.identity) != 0;
  if (peer.tenant->admin() || (!named && peer.identity == kLoopbackIdentity)) return true;
  *sentence =
      "only an administrator may do that: a member of a tenant with admin: true, or the "
      "server's own user on its own host; " +
      NameOf(peer) + " of the tenant '" + peer.tenant->name() + "' is none";
  return false;
}

transport::AdminReply Admin::Handle(const Peer& peer, const transport::AdminRequest& request) {
  std::string sentence;
  if (!MayAdminister(peer, &sentence)) {
    Log(LogLevel::kWarning, peer.subject(),
        "administration by " + NameOf(peer) + " was refused: " + sentence);
    return Refuse(sentence);
  }
  if (request.request_case() != transport::AdminRequest::kReload) {
    return Refuse("this longwired (" LONGWIRE_VERSION
                  ") does not know what it is asked for; upgrade it");
  }
  Reloader::Outcome outcome = reload_(NameOf(peer));
  transport::AdminReply reply;
  reply.set_done(outcome.done);
  for (const std::string& said : outcome.sentences) reply.add_sentences(said);
  return reply;
}

}  // namespace longwire::daemon
