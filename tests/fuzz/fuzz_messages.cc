// The packets of warden, keeper and images: workers and daemons send them, and neither may end the
// other side. The packet's own kind says what it is read as.
#include <cstdlib>

#include "server/protocol/hello.h"
#include "server/protocol/images.h"
#include "server/protocol/keeper.h"
#include "server/protocol/kept_session.h"
#include "server/protocol/warden.h"

namespace {

using longwire::wire::WireResult;
namespace images = longwire::images;
namespace keeper = longwire::keeper;
namespace message = longwire::message;
namespace warden = longwire::warden;

template <class Message>
void RoundTrip(std::span<const std::byte> packet) {
  Message read;
  if (message::Unpack(packet, &read) != WireResult::kOk) return;
  // Truth values other than 0 and 1 are the only bytes that may come out differently.
  if (message::Pack(read).size() != packet.size()) std::abort();
}

template <class... Messages>
void RoundTripAnyOf(std::span<const std::byte> packet) {
  (RoundTrip<Messages>(packet), ...);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto packet = std::as_bytes(std::span(data, size));
  RoundTripAnyOf<warden::StartWorker, warden::WorkerStarted, warden::KillWorker,
                 warden::ListWorkers, warden::ListEnd, warden::WorkerDied, warden::GetStats,
                 warden::Stats, warden::SetQuota, warden::SetLimits, warden::GetEvents,
                 warden::Events, warden::KeepSession, warden::SetGrace, warden::TakeSession,
                 warden::SessionTaken>(packet);
  RoundTripAnyOf<keeper::Lease, keeper::Grant, keeper::Refuse, keeper::Return, keeper::GetInfo,
                 keeper::Info, keeper::Reclaim, keeper::Reclaimed, keeper::Note, keeper::Attach,
                 keeper::KeeperLimits, keeper::KeeperState, keeper::SwapOut, keeper::SwapLeft,
                 keeper::SwapBack, keeper::SwapReturned, keeper::SwapWatch, keeper::Ran,
                 keeper::EndWorker, keeper::Charge, keeper::Charged, keeper::Uncharge>(packet);
  RoundTripAnyOf<message::Hello>(packet);
  RoundTripAnyOf<images::Find, images::Found, images::Keep>(packet);
  return 0;
}
