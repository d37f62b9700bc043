#include "link/spare_cores.h"

#include <cstdio>
#include <fstream>

#include "wire/rings/spinning.h"

namespace longwire::link {

std::optional<int> RunningThreads(const std::string& loadavg) {
  double minutes = 0;
  int running = 0;
  int all = 0;
  const int found = std::sscanf(loadavg.c_str(), "%lf %lf %lf %d/%d", &minutes, &minutes, &minutes,
                                &running, &all);
  return found == 5 && running > 0 ? std::optional(running) : std::nullopt;
}

bool HasSpareCores() {
  std::ifstream file("/proc/loadavg");
  std::string text;
  std::getline(file, text);
  const std::optional<int> running = RunningThreads(text);
  static const int cores = wire::AllowedCores();
  return running && *running <= cores / 2;
}

}  // namespace longwire::link
