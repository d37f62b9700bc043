// What fuzz_warden's warden starts as keeper and as worker: gives the descriptors that it was
// started with to the fuzz target, at the socket named by LONGWIRE_HAND_OVER, and waits for its
// end. As a keeper it has greeted the warden before, and has said that its device is open.
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "server/protocol/hello.h"
#include "server/protocol/keeper.h"
#include "wire/socket.h"

using namespace longwire;

int main(int argc, char** argv) {
  bool worker = false;
  for (int i = 1; i < argc; ++i) worker |= std::strcmp(argv[i], "--up") == 0;
  const char* socket = std::getenv("LONGWIRE_HAND_OVER");
  if (socket == nullptr) return 3;
  std::vector<int> files = {3};
  if (worker) {
    files.push_back(STDERR_FILENO);
  } else {
    if (message::TakeHello(3)) wire::SendMessage(3, message::Pack(message::Hello{}));
    keeper::KeeperState state;
    state.driver = "fake";
    state.device_count = 1;
    state.total = state.lendable = uint64_t{1} << 30;
    wire::SendMessage(3, message::Pack(state));
  }
  wire::Descriptor to = wire::ConnectLocal(socket);
  const std::byte kind{worker ? uint8_t{1} : uint8_t{0}};
  if (!wire::SendMessage(to.get(), {&kind, 1}, files)) return 4;
  to.Reset();
  while (true) pause();
}
