// Which CUDA driver library serves this host, NVIDIA's or the software device, and its functions.
// Keeper and worker choose by the same rules. Longwire's own client library is never chosen.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "longwire/driver_table.h"

namespace longwire {

struct LoadedDriver {
  DriverTable table;
  std::string path;
  bool software = false;             // the software device
  std::vector<std::string> missing;  // functions that it lacks, see LoadDriverTable
  std::string not_nvidia;            // chosen by "auto": why NVIDIA's driver does not serve
};

// Where drivers may lie.
struct DriverPlaces {
  std::vector<std::string> nvidia;  // in order; the first that is there is taken
  std::string software;

  // As distributions and containers install them; the software device beside this program. Not the
  // loader's search path, where programs find the client library.
  static DriverPlaces OfThisHost();
};

// Loads the driver library at `path`, for good. CUDA_ERROR_NO_DEVICE and a sentence if it cannot be
// loaded or is no driver.
CUresult LoadDriver(const std::string& path, LoadedDriver* driver, std::string* sentence);

// Says whether the process can work with a driver: a CUresult, with a sentence for people.
using TryDriver = std::function<CUresult(const LoadedDriver&, std::string* sentence)>;

// Loads the driver that `choice` names and tries it. "software": the software device; "auto":
// NVIDIA's driver, or the software device where that cannot be loaded or the trial fails; else the
// path of a library. On failure a CUresult with a sentence; *driver is then the last that was
// tried.
CUresult ChooseDriver(const std::string& choice, const DriverPlaces& places, const TryDriver& works,
                      LoadedDriver* driver, std::string* sentence);

}  // namespace longwire
