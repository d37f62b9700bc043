#include "server/keeper/chosen_device.h"

#include <cstdio>

#include "server/driver/driver_choice.h"
#include "server/keeper/vmm_device.h"

namespace longwire::keeper {

std::unique_ptr<DeviceMemory> OpenChosenDevice(const std::string& choice, int device,
                                               KeeperState* state) {
  std::unique_ptr<DeviceMemory> opened;
  LoadedDriver driver;
  auto open = [&](const LoadedDriver& tried, std::string* sentence) {
    return static_cast<CUresult>(OpenVmmDevice(tried, device, &opened, sentence));
  };
  state->code = ChooseDriver(choice, DriverPlaces::OfThisHost(), open, &driver, &state->sentence);
  state->driver = driver.path;
  state->software = driver.software;
  if (!driver.not_nvidia.empty()) {
    std::fprintf(stderr,
                 "longwire-keeper: NO GPU HERE (%s): serving the SOFTWARE DEVICE, which is slow "
                 "and meant for trying and testing\n",
                 driver.not_nvidia.c_str());
  }
  return opened;
}

}  // namespace longwire::keeper
