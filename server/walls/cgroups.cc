#include "server/walls/cgroups.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "server/walls/write_file.h"

namespace longwire::walls {
namespace {

const std::string kMount = "/sys/fs/cgroup";
constexpr std::string_view kControllers[] = {"memory", "pids", "cpu"};

// This process's group of the controller; "": that of version 2.
std::string Own(std::string_view controller) {
  std::ifstream lines("/proc/self/cgroup");
  for (std::string line; std::getline(lines, line);) {
    size_t names = line.find(':'), path = line.find(':', names + 1);
    std::string list = "," + line.substr(names + 1, path - names - 1) + ",";
    if (list.find("," + std::string(controller) + ",") == std::string::npos) continue;
    std::string folder = kMount + (controller.empty() ? "" : "/" + std::string(controller));
    return folder + line.substr(path + 1);
  }
  return {};
}

// Groups of a starter that has ended: worker-PID-NUMBER, without processes.
void RemoveLeftOver(const std::string& folder) {
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
    int starter = 0;
    const std::string name = entry.path().filename();
    if (sscanf(name.c_str(), "worker-%d-", &starter) != 1) continue;
    if (access(("/proc/" + std::to_string(starter)).c_str(), F_OK) != 0)
      rmdir(entry.path().c_str());
  }
}

}  // namespace

std::vector<std::string> PrepareCgroups(const std::string& place) {
  if (access((kMount + "/cgroup.controllers").c_str(), F_OK) == 0) {
    const bool in_own = place == "own";
    const std::string folder = in_own ? Own("") : place;
    mkdir(folder.c_str(), 0755);
    RemoveLeftOver(folder);
    // A group that has groups with controllers may have no process itself.
    if (in_own) mkdir((folder + "/starter").c_str(), 0755);
    bool ready = (!in_own || WriteFile(folder + "/starter/cgroup.procs", "0")) &&
                 WriteFile(folder + "/cgroup.subtree_control", "+memory +pids +cpu");
    return ready ? std::vector<std::string>{folder} : std::vector<std::string>();
  }
  std::vector<std::string> folders;
  for (std::string_view controller : kControllers) {
    const std::string own = Own(controller);
    if (own.empty() || access(own.c_str(), W_OK) != 0) return {};
    RemoveLeftOver(own);
    folders.push_back(own);
  }
  return folders;
}

}  // namespace longwire::walls
