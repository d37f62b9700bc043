#include "server/daemon/metrics/process_figures.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace longwire::daemon {
namespace {

// The fields of /proc/self/stat behind the process's name, which may have spaces (proc(5)).
constexpr size_t kStartTime = 19, kVirtualSize = 20, kResidentPages = 21;

std::vector<std::string> StatFields() {
  std::ifstream file("/proc/self/stat");
  std::string text;
  std::getline(file, text);
  std::istringstream fields(text.substr(std::min(text.rfind(')') + 1, text.size())));
  std::vector<std::string> all;
  for (std::string field; fields >> field;) all.push_back(field);
  return all;
}

std::optional<double> ReadClock(clockid_t clock) {
  timespec time{};
  if (clock_gettime(clock, &time) != 0) return std::nullopt;
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

// /proc/stat, which has the boot's time, is hidden from a service.
std::optional<double> StartTime(const std::vector<std::string>& fields) {
  auto now = ReadClock(CLOCK_REALTIME);
  auto since_boot = ReadClock(CLOCK_BOOTTIME);
  if (!now || !since_boot || fields.size() <= kStartTime) return std::nullopt;
  const double ticks = std::strtod(fields[kStartTime].c_str(), nullptr);
  return *now - *since_boot + ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
}

std::optional<uint64_t> OpenDescriptors() {
  // Since Linux 6.2 the size says it; before, it is 0, and counting takes a while.
  struct stat folder {};
  if (stat("/proc/self/fd", &folder) == 0 && folder.st_size > 0) {
    return static_cast<uint64_t>(folder.st_size);
  }
  std::error_code problem;
  std::filesystem::directory_iterator entry("/proc/self/fd", problem);
  uint64_t count = 0;
  while (!problem && entry != std::filesystem::directory_iterator()) {
    ++count;
    entry.increment(problem);
  }
  if (problem || count == 0) return std::nullopt;
  return count - 1;  // without the one that reads the folder
}

std::optional<uint64_t> MostDescriptors() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return std::nullopt;
  return limit.rlim_cur;
}

}  // namespace

ProcessFigures ReadProcess() {
  ProcessFigures figures;
  const std::vector<std::string> fields = StatFields();
  // Once: a clock that is set must not make it look like another start.
  static const std::optional<double> started = StartTime(fields);
  figures.start_time = started;
  figures.cpu_seconds = ReadClock(CLOCK_PROCESS_CPUTIME_ID);
  if (fields.size() > kResidentPages) {
    figures.virtual_bytes = std::strtoull(fields[kVirtualSize].c_str(), nullptr, 10);
    figures.resident_bytes = std::strtoull(fields[kResidentPages].c_str(), nullptr, 10) *
                             static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  }
  figures.open_descriptors = OpenDescriptors();
  figures.most_descriptors = MostDescriptors();
  return figures;
}

}  // namespace longwire::daemon
