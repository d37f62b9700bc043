// longwire-walls: makes what is made once for all workers, as far as this host gives it, and
// becomes longwire-starter. It reads its command line and nothing else.
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "longwire/guard_switches.h"
#include "server/protocol/starter.h"
#include "server/walls/cgroups.h"
#include "server/walls/view.h"
#include "server/walls/write_file.h"
#include "wire/descriptors.h"

namespace longwire::walls {
namespace {

constexpr const char* kUsage =
    R"(longwire-walls: prepares walls between workers, and becomes longwire-starter.

  longwire-walls --user N --host-memory BYTES --processes N [options]

  --user N          the first of the workers' users, of which there are 4194304
  --host-memory N   bytes that a worker may use of the host's memory (with --cgroups)
  --processes N     threads that a worker may have (with --cgroups)
  --socket FD       a connection to the warden; without it, the socket 3 listens for one
  --tenants FOLDER  holds the tenants' folders of compiled code; none: there are none
  --show PATHS      workers see these, too; with colons between
  --cgroups own|FOLDER
                    make a control group for each worker, within the own one or in FOLDER
)";

// Whether the work succeeds in a child.
bool Succeeds(const std::function<bool()>& work) {
  pid_t child = fork();
  if (child == 0) _exit(work() ? 0 : 1);
  int status = 1;
  return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

// Without root: all capabilities in a namespace of its own, in which user and group are what they
// were. The starter keeps them.
bool EnterOwnUserNamespace() {
  auto itself = [](unsigned id) { return std::to_string(id) + " " + std::to_string(id) + " 1"; };
  const std::string user = itself(geteuid()), group = itself(getegid());
  if (unshare(CLONE_NEWUSER) != 0 || !WriteFile("/proc/self/setgroups", "deny") ||
      !WriteFile("/proc/self/uid_map", user) || !WriteFile("/proc/self/gid_map", group)) {
    return false;
  }
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct all[2] = {};
  if (syscall(SYS_capget, &header, all) != 0) return false;
  for (__user_cap_data_struct& half : all) half.inheritable = half.permitted;
  if (syscall(SYS_capset, &header, all) != 0) return false;
  for (int right = 0; prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, right, 0, 0) == 0; ++right) {
  }
  return true;
}

// As a worker does it (server/starter/main.cc): a host may forbid it any /proc of its own.
bool CanEnterView() {
  return Succeeds([] {
    return unshare(CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS) == 0 && Succeeds([] {
             const std::string proc = std::string(starter::kRoot) + "/proc";
             return mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) == 0 &&
                    mount("proc", proc.c_str(), "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC,
                          nullptr) == 0;
           });
  });
}

std::vector<std::string> Shown(const std::string& program, const std::string& paths) {
  std::vector<std::string> shown;
  for (size_t begin = 0, end = 0; begin < paths.size(); begin = end + 1) {
    end = std::min(paths.find(':', begin), paths.size());
    shown.push_back(paths.substr(begin, end - begin));
  }
  // Beside the programs lies the software device.
  if (!program.starts_with("/usr/")) {
    shown.push_back(std::filesystem::path(program).parent_path().parent_path());
  }
  return shown;
}

// The walls that stand; 0 with errno if there are none. Workers keep the groups.
uint32_t Build(const std::vector<std::string>& shown, const std::string& tenants) {
  uint32_t walls = 0;
  if (geteuid() == 0) {
    const std::vector<gid_t> groups = DeviceGroups();
    if (setgroups(groups.size(), groups.data()) == 0) walls |= starter::kOwnUser;
  } else if (!EnterOwnUserNamespace()) {
    return 0;
  }
  if (BuildView(shown, tenants) && CanEnterView()) {
    walls |= starter::kOwnSpaces | (tenants.empty() ? 0 : uint32_t{starter::kTenantFolders});
  }
  const bool below =
      std::ranges::any_of(shown, [](auto& path) { return path.starts_with("/tmp/"); });
  if (!below) walls |= starter::kOwnTmp;
  if (Succeeds([] { return unshare(CLONE_NEWNET) == 0; })) walls |= starter::kOwnNetwork;
  return walls;
}

// `program` is open: it may lie where the tree covers it.
[[noreturn]] void BecomeStarter(int program, std::vector<std::string> words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  execveat(program, "", pointers.data(), environ, AT_EMPTY_PATH);
  std::fprintf(stderr, "longwire-walls: cannot become %s: %s\n", pointers[0], strerror(errno));
  _exit(1);
}

int Run(std::map<std::string, std::string> told) {
  const auto here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  std::string program = here / "longwire-worker";
  std::vector<std::string> shown = Shown(program, told["--show"]);
#if LONGWIRE_GUARD_SWITCHES
  // A test plays a worker that is in an attacker's hands.
  if (const char* other = getenv("LONGWIRE_TEST_WORKER")) {
    program = other;
    shown.push_back(program.substr(0, program.rfind('/')));
  }
#endif
  const int starter_program = open((here / "longwire-starter").c_str(), O_PATH | O_CLOEXEC);
  const bool listens = told["--socket"].empty();
  const int given = listens ? 3 : std::atoi(told["--socket"].c_str());
  const int socket = listens ? accept(given, nullptr, nullptr) : given;
  umask(S_IWGRP | S_IWOTH);  // workers see what it makes
  std::vector<std::string> cgroups;
  if (const std::string& place = told["--cgroups"]; !place.empty()) cgroups = PrepareCgroups(place);
  const std::string& tenants = told["--tenants"];
  uint32_t walls = Build(shown, tenants == "none" ? "" : tenants);
  if (socket < 0 || (walls & (starter::kOwnUser | starter::kOwnSpaces)) == 0) {
    std::fprintf(stderr, "longwire-walls: no walls can be had here: %s\n", strerror(errno));
    return 1;
  }
  if (!cgroups.empty()) walls |= starter::kOwnCgroup;
  std::vector<std::string> words = {here / "longwire-starter",
                                    std::to_string(socket),
                                    std::to_string(walls),
                                    told["--user"],
                                    told["--host-memory"],
                                    told["--processes"],
                                    program};
  words.insert(words.end(), cgroups.begin(), cgroups.end());
  BecomeStarter(starter_program, std::move(words));
}

}  // namespace
}  // namespace longwire::walls

int main(int count, char** words) {
  longwire::wire::OpenStandardDescriptors();
  std::map<std::string, std::string> told;
  for (int i = 1; i + 1 < count; i += 2) told[words[i]] = words[i + 1];
  const bool complete = count % 2 == 1 && told.count("--user") != 0 &&
                        told.count("--host-memory") != 0 && told.count("--processes") != 0;
  if (!complete) {
    const bool asked = count == 2 && std::strcmp(words[1], "--help") == 0;
    std::fputs(longwire::walls::kUsage, asked ? stdout : stderr);
    return asked ? 0 : 2;
  }
  return longwire::walls::Run(std::move(told));
}
