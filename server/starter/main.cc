// longwire-starter: starts workers behind walls, at the request of longwire-warden. It is the one
// process of Longwire with privileges: it reads packets of one size from the warden alone, takes no
// path from it, and never reads what it passes on. longwire-walls, which becomes it, has made what
// is made once: the tree of files that workers see, and the control groups. What needs no privilege
// a worker does to itself (server/worker/walls).
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "server/protocol/starter.h"
#include "wire/socket.h"

namespace longwire::starter {
namespace {

// The command line, of longwire-walls alone: these in order, then the paths of our control groups.
constexpr int kSocketAt = 1, kWallsAt = 2, kFirstUserAt = 3, kMemoryAt = 4, kProcessesAt = 5;
constexpr int kProgramAt = 6, kEnd = 7;
char** words;
const std::string self = std::to_string(getpid());

unsigned long Number(int at) { return std::strtoul(words[at], nullptr, 10); }
bool Stands(Wall wall) { return (Number(kWallsAt) & wall) != 0; }
std::string Place(uint64_t worker) { return kPlaces + std::to_string(worker); }

bool Write(const std::string& path, const std::string& text) {
  wire::Descriptor file(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  return write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

// In a new worker.
void Must(bool good, const char* what) {
  if (good) return;
  dprintf(2, "longwire-starter: starting a worker: %s: %s\n", what, strerror(errno));
  _exit(127);
}

std::vector<std::string> Cgroups(uint64_t worker) {
  std::vector<std::string> folders;
  for (char** path = words + kEnd; *path != nullptr; ++path) {
    folders.push_back(std::string(*path) + "/worker-" + self + "-" + std::to_string(worker) + "/");
  }
  return folders;
}

// Each file is in one version, or with one controller, only.
void SetWeight(uint64_t worker, bool latency_critical) {
  for (const std::string& folder : Cgroups(worker)) {
    Write(folder + "cpu.weight", latency_critical ? "1000" : "100");
    Write(folder + "cpu.shares", latency_critical ? "10240" : "1024");
  }
}

// What a worker enters: before there is one, for it may be assigned at once.
void Make(uint64_t worker) {
  for (const std::string& folder : Cgroups(worker)) {
    mkdir(folder.c_str(), 0755);
    Write(folder + "memory.max", words[kMemoryAt]);
    Write(folder + "memory.oom.group", "1");
    Write(folder + "memory.limit_in_bytes", words[kMemoryAt]);
    Write(folder + "pids.max", words[kProcessesAt]);
  }
  SetWeight(worker, false);
  if (!Stands(kOwnSpaces) || mkdir(Place(worker).c_str(), 0755) != 0) return;
  mkdir((Place(worker) + kCompiled).c_str(), 0755);
}

bool Mount(const char* kind, const std::string& at, unsigned long flags, const char* options) {
  return mount(kind, at.c_str(), kind, MS_NOSUID | MS_NODEV | flags, options) == 0;
}

// From now on it sees the tree alone. What appears in its place later comes along, and nothing goes
// back.
bool EnterView(const std::string& place) {
  const std::string root = kRoot;
  return mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) == 0 &&
         Mount("proc", root + "/proc", MS_NOEXEC, nullptr) &&
         (!Stands(kOwnTmp) || Mount("tmpfs", root + "/tmp", 0, "mode=1777,size=256m")) &&
         Mount("tmpfs", root + "/dev/shm", 0, "mode=1777,size=256m") &&
         mount(place.c_str(), (root + "/cache").c_str(), nullptr, MS_BIND | MS_REC, nullptr) == 0 &&
         chdir(root.c_str()) == 0 && syscall(SYS_pivot_root, ".", ".") == 0 &&
         umount2(".", MNT_DETACH) == 0 && chdir("/") == 0;
}

void DropPrivileges(uid_t user, int starter) {
  for (int right = 0; prctl(PR_CAPBSET_DROP, right) == 0; ++right) {
  }
  if (Stands(kOwnUser)) {
    Must(setresgid(user, user, user) == 0 && setresuid(user, user, user) == 0, "its user");
  }
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[2] = {};
  Must(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) == 0 &&
           syscall(SYS_capset, &header, none) == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0,
       "capabilities");
  // After the change of user, which forgets it.
  Must(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0, "the death signal");
  pollfd gone{starter, POLLIN, 0};
  Must(poll(&gone, 1, 0) == 0, "the starter is gone");
}

// The new process becomes the worker: `given` become 1 and 2, 3, 4, …
[[noreturn]] void Become(uint64_t worker, const std::vector<wire::Descriptor>& given, int starter) {
  char pid[32] = {};  // by which others know it; in its own namespace it has another
  Must(readlink("/proc/self", pid, sizeof(pid) - 1) > 0, "/proc");
  for (const std::string& folder : Cgroups(worker)) {
    Must(Write(folder + "cgroup.procs", "0"), "its control group");
  }
  if (Stands(kOwnSpaces)) Must(EnterView(Place(worker)), "its files");
  umask(0);  // another worker of the tenant reads its compile cache
  DropPrivileges(static_cast<uid_t>(Number(kFirstUserAt)) + static_cast<uid_t>(std::atoi(pid)),
                 starter);
  // First out of the way of their final numbers, then to these; all others close.
  std::vector<int> moved;
  const int count = static_cast<int>(given.size());
  for (const wire::Descriptor& one : given) {
    moved.push_back(fcntl(one.get(), F_DUPFD_CLOEXEC, kSettings + count));
    Must(moved.back() >= 0, "descriptors");
  }
  bool placed = dup2(moved[kLogAt], 1) == 1 && dup2(moved[kLogAt], 2) == 2;
  for (int i = kFirstGiven; i < count; ++i) {
    placed &= dup2(moved[static_cast<size_t>(i)], kSettings + i - kFirstGiven) >= 0;
  }
  placed &= close_range(kSettings + count - kFirstGiven, ~0U, CLOSE_RANGE_CLOEXEC) == 0;
  Must(placed, "descriptors");
  const std::string settings = std::to_string(kSettings);
  const char* arguments[] = {words[kProgramAt], "--settings", settings.c_str(),
                             "--pid",           pid,          nullptr};
  execve(words[kProgramAt], const_cast<char**>(arguments), environ);
  Must(false, words[kProgramAt]);
  _exit(127);
}

// 0 with errno on failure. What fails later, ends the worker with 127.
pid_t Launch(uint64_t worker, const std::vector<wire::Descriptor>& given, bool own_network,
             int starter, wire::Descriptor* pidfd) {
  int kinds = Stands(kOwnSpaces) ? CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS : 0;
  if (own_network && Stands(kOwnNetwork)) kinds |= CLONE_NEWNET;
  int made = -1;
  const long pid = syscall(SYS_clone, kinds | CLONE_PIDFD | SIGCHLD, 0, &made, 0, 0);
  if (pid == 0) Become(worker, given, starter);
  pidfd->Reset(made);
  return pid > 0 ? static_cast<pid_t>(pid) : 0;
}

// A user namespace in which the worker is who owns the folders on the disk: a child's that sleeps.
wire::Descriptor Mapping(uid_t owner, uid_t user) {
  const auto child = static_cast<pid_t>(syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0));
  while (child == 0) pause();
  if (child <= 0) return {};
  const std::string folder = "/proc/" + std::to_string(child), at = std::to_string(owner);
  const std::string map = at + " " + std::to_string(user) + " 1";
  bool mapped = Write(folder + "/uid_map", map) && Write(folder + "/gid_map", map);
  wire::Descriptor space(mapped ? open((folder + "/ns/user").c_str(), O_RDONLY | O_CLOEXEC) : -1);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  return space;
}

// The tenant's folder of compiled code appears in the worker's /cache, with the worker as the owner
// of its files; where the file system cannot do that, everybody may write them.
bool HandOver(const std::string& tenant, uint64_t worker, uid_t user) {
  // The prefix keeps ".." from being one.
  const std::string folder = std::string(kTenants) + "/=" + tenant;
  const auto owner = static_cast<uid_t>(Number(kFirstUserAt));
  const bool own_user = Stands(kOwnUser);
  if (mkdir(folder.c_str(), 0700) == 0 && own_user && lchown(folder.c_str(), owner, owner) != 0) {
    return false;
  }
  wire::Descriptor tree(open_tree(AT_FDCWD, folder.c_str(),
                                  OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW));
  wire::Descriptor mapping = own_user ? Mapping(owner, user) : wire::Descriptor();
  mount_attr mapped{MOUNT_ATTR_IDMAP, 0, 0, static_cast<uint64_t>(mapping.get())};
  bool maps = !own_user || (mapping.valid() && mount_setattr(tree.get(), "", AT_EMPTY_PATH, &mapped,
                                                             sizeof(mapped)) == 0);
  if (!maps) chmod(folder.c_str(), 0777);
  return move_mount(tree.get(), "", AT_FDCWD, (Place(worker) + kCompiled).c_str(),
                    MOVE_MOUNT_F_EMPTY_PATH) == 0;
}

void Forget(uint64_t worker) {
  for (const std::string& folder : Cgroups(worker)) rmdir(folder.c_str());
  if (!Stands(kOwnSpaces)) return;
  while (umount2((Place(worker) + kCompiled).c_str(), MNT_DETACH) == 0) {
  }
  rmdir((Place(worker) + kCompiled).c_str());
  rmdir(Place(worker).c_str());
}

class Starter {
 public:
  // Until the warden goes away; the workers end with this process.
  void Serve(int deaths) {
    Say({.what = What::kReady, .walls = static_cast<uint32_t>(Number(kWallsAt))});
    pollfd events[] = {{socket_.get(), POLLIN, 0}, {deaths, POLLIN, 0}};
    while (socket_.valid() && (poll(events, 2, -1) > 0 || errno == EINTR)) {
      signalfd_siginfo seen;
      if ((events[1].revents & POLLIN) != 0 && read(deaths, &seen, sizeof(seen)) > 0) Reap();
      if (events[0].revents != 0) Receive();
    }
  }

 private:
  void Receive() {
    bool closed = false;
    auto message = wire::ReceiveMessage(socket_.get(), std::chrono::milliseconds(0), &closed);
    if (!message && !closed) return;
    Request request;
    const bool whole = message && message->bytes.size() == sizeof(request);
    if (whole) memcpy(&request, message->bytes.data(), sizeof(request));
    if (!whole || request.mark != kMark || request.tenant[sizeof(request.tenant) - 1] != '\0') {
      return socket_.Reset();
    }
    if (request.what == What::kStart) Start(request.own_network != 0, message->descriptors);
    // Its number is nobody else's until it has been reaped here.
    auto worker = workers_.find(request.pid);
    if (worker == workers_.end()) return;
    if (request.what == What::kKill) kill(request.pid, SIGKILL);
    if (request.what == What::kAssign) Assign(request, worker->second);
  }

  void Start(bool own_network, const std::vector<wire::Descriptor>& given) {
    wire::Descriptor pidfd;
    pid_t pid = 0;
    if (given.size() >= kMinDescriptors && workers_.size() < kMaxWorkers) {
      Make(++last_);
      pid = Launch(last_, given, own_network, self_.get(), &pidfd);
      pid != 0 ? void(workers_.emplace(pid, last_)) : Forget(last_);
    }
    Say({.what = What::kStarted, .pid = pid}, pidfd.get());
  }

  static void Assign(const Request& request, uint64_t worker) {
    SetWeight(worker, request.latency_critical != 0);
    const std::string tenant = request.tenant;
    const auto user = static_cast<uid_t>(Number(kFirstUserAt)) + static_cast<uid_t>(request.pid);
    const bool named = !tenant.empty() && tenant.find('/') == std::string::npos;
    if (!named || !Stands(kTenantFolders) || HandOver(tenant, worker, user)) return;
    dprintf(2, "longwire-starter: what is compiled for worker %d is not cached: %s\n", request.pid,
            strerror(errno));
  }

  void Reap() {
    int status = 0;
    for (pid_t pid = 0; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
      auto worker = workers_.extract(pid);
      if (worker.empty()) continue;
      Forget(worker.mapped());
      Say({.what = What::kEnded,
           .pid = pid,
           .exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
           .signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0});
    }
  }

  void Say(const Answer& answer, int descriptor = -1) const {
    const std::span<const int> passed(&descriptor, descriptor >= 0 ? 1 : 0);
    (void)wire::SendMessage(socket_.get(), std::as_bytes(std::span(&answer, 1)), passed);
  }

  wire::Descriptor socket_{static_cast<int>(Number(kSocketAt))};
  const wire::Descriptor self_{static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0))};
  std::map<pid_t, uint64_t> workers_;  // their numbers
  uint64_t last_ = 0;
};

}  // namespace
}  // namespace longwire::starter

int main(int count, char** given) {
  longwire::wire::OpenStandardDescriptors();
  if (count < longwire::starter::kEnd) return 2;  // longwire-walls starts it, and nobody else
  longwire::starter::words = given;
  sigset_t children;
  sigemptyset(&children);
  sigaddset(&children, SIGCHLD);
  sigprocmask(SIG_SETMASK, &children, nullptr);
  longwire::starter::Starter().Serve(signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK));
  return 0;
}
