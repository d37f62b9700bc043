// The keeper with a fake device of 1 GiB, for the warden's test. A driver named "broken" fails,
// "second-broken" on the second device.

#include <cstdlib>
#include <cstring>

#include "server/keeper/fake_device.h"
#include "server/keeper/greeting.h"
#include "server/keeper/keeper.h"

int main(int argc, char** argv) {
  using namespace longwire::keeper;
  std::string driver;
  int control = -1;
  int ordinal = 0;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--driver") == 0) driver = argv[i + 1];
    if (std::strcmp(argv[i], "--control") == 0) control = std::atoi(argv[i + 1]);
    if (std::strcmp(argv[i], "--device") == 0) ordinal = std::atoi(argv[i + 1]);
  }
  if (driver == "broken" || (driver == "second-broken" && ordinal == 1)) {
    KeeperState state;
    state.code = 999;
    state.sentence = "the fake device is broken";
    (void)longwire::wire::SendMessage(control, longwire::message::Pack(state));
    return 1;
  }
  KeeperState state;
  if (GreetWarden(control, &state) == 0) return 1;
  FakeDevice device(uint64_t{1} << 30, uint64_t{2} << 20);
  state.driver = driver;
  Keeper keeper(device, {}, longwire::wire::Descriptor(control), state);
  keeper.Run();
}
