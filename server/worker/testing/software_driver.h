// The software device's driver, for tests that are linked with longwire_driver and compiled with
// its path, LONGWIRE_SOFTWARE_DRIVER.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "server/driver/driver_choice.h"

namespace longwire::worker::testing {

// One driver for the process: it is initialised once and never unloaded.
inline LoadedDriver& Driver() {
  static LoadedDriver* driver = [] {
    auto* loaded = new LoadedDriver;
    std::string sentence;
    EXPECT_EQ(LoadDriver(LONGWIRE_SOFTWARE_DRIVER, loaded, &sentence), CUDA_SUCCESS) << sentence;
    return loaded;
  }();
  return *driver;
}

}  // namespace longwire::worker::testing
