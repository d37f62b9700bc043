#include "server/keeper/greeting.h"

#include <cstdio>

#include "server/keeper/hello.h"
#include "server/keeper/keeper.h"

namespace longwire::keeper {
namespace {

constexpr int kSystemDriverMismatch = 803;  // a CUresult

std::string Refusal(std::string_view who, wire::VersionRange versions) {
  return wire::RefusalOf({who, who, versions},
                         {"longwire-keeper", "longwire-keeper", wire::SpokenVersions()});
}

}  // namespace

uint32_t GreetWarden(int control, KeeperState* state) {
  auto hello = message::TakeHello(control);
  if (hello) (void)wire::SendMessage(control, message::Pack(message::Hello{}));
  wire::VersionRange warden = hello.value_or(wire::kWithoutRange);
  uint32_t version = wire::NewestCommon(warden, wire::SpokenVersions());
  if (version != 0) return version;
  state->code = kSystemDriverMismatch;
  state->sentence = Refusal("longwire-warden", warden);
  return 0;
}

void Keeper::GreetWorker(Session& session, wire::VersionRange versions) {
  session.version = wire::NewestCommon(versions, wire::SpokenVersions());
  Answer(session, message::Pack(message::Hello{}));
  if (session.version != 0) return;
  std::fprintf(stderr, "longwire-keeper: %s\n", Refusal("longwire-worker", versions).c_str());
  CloseSocket(session);
}

}  // namespace longwire::keeper
