#include "server/keeper/greeting.h"

#include <cstdio>

#include "base/cuda_codes.h"
#include "server/keeper/keeper.h"
#include "server/protocol/hello.h"

namespace longwire::keeper {

uint32_t GreetWarden(int control, KeeperState* state) {
  auto hello = message::TakeHello(control);
  if (hello) (void)wire::SendMessage(control, message::Pack(message::Hello{}));
  wire::VersionRange warden = hello.value_or(wire::kWithoutRange);
  uint32_t version = wire::NewestCommon(warden, wire::SpokenVersions());
  if (version != 0) return version;
  state->code = base::kSystemDriverMismatch;
  state->sentence = message::RefusalOf("longwire-keeper", "longwire-warden", warden);
  return 0;
}

void Keeper::GreetWorker(KeeperSession& session, wire::VersionRange versions) {
  session.version = wire::NewestCommon(versions, wire::SpokenVersions());
  // First: a worker that has its answer is one that a successor knows.
  if (session.version != 0) pool_.SetVersion(session.worker, session.version);
  Answer(session, message::Pack(message::Hello{}));
  if (session.version != 0) return;
  std::string sentence = message::RefusalOf("longwire-keeper", "longwire-worker", versions);
  std::fprintf(stderr, "longwire-keeper: %s\n", sentence.c_str());
  CloseSocket(session);
}

}  // namespace longwire::keeper
