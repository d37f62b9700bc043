// A worker in an attacker's hands: in a build for tests it is started in a worker's place
// (LONGWIRE_TEST_WORKER), with the same user and walls, and does to itself what a worker does
// before it can fall into somebody's hands. What it does stands in files beside it:
//
//   targets   absent: it becomes the worker that LONGWIRE_TEST_REAL_WORKER names. Else lines KIND
//             VALUE, each something that it tries to reach. It writes a line for each attempt:
//             "attack NAME: held (ERROR)" or "attack NAME: SUCCEEDED".
//   probe     present: it waits until it has a session, and then says what is in its tenant's
//             compile cache, where it leaves a file.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "server/worker/walls/settings.h"
#include "server/worker/walls/walls.h"

namespace {

int log_file = 2;

void Say(const std::string& line) {
  if (write(log_file, (line + "\n").data(), line.size() + 1) < 0) _exit(1);
}

void Attack(const std::string& name, const std::function<bool()>& succeeds) {
  errno = 0;
  bool good = succeeds();
  Say("attack " + name + (good ? ": SUCCEEDED" : ": held (" + std::string(strerror(errno)) + ")"));
}

bool Opens(const std::string& path, int flags) {
  int file = open(path.c_str(), flags | O_CLOEXEC);
  if (file >= 0) close(file);
  return file >= 0;
}

bool Lists(const std::string& path) {
  DIR* folder = opendir(path.c_str());
  if (folder == nullptr) return false;
  errno = 0;
  int entries = 0;
  while (readdir(folder) != nullptr) ++entries;
  closedir(folder);
  return entries > 2;
}

// A shared ring of another process: its descriptor, opened anew, and mapped.
bool MapsARing(const std::string& process) {
  const std::string folder = process + "/fd";
  for (int number = 3; number < 64; ++number) {
    const std::string path = folder + "/" + std::to_string(number);
    char target[128] = {};
    if (readlink(path.c_str(), target, sizeof(target) - 1) < 0) continue;
    if (strstr(target, "memfd:") == nullptr) continue;
    int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (file < 0) continue;
    void* mapped = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (mapped != MAP_FAILED) return true;
  }
  return false;
}

bool ReadsMemory(pid_t pid) {
  std::ifstream maps("/proc/" + std::to_string(pid) + "/maps");
  unsigned long address = 0x400000;
  std::string line;
  if (std::getline(maps, line)) address = strtoul(line.c_str(), nullptr, 16);
  char byte[16];
  iovec here{byte, sizeof(byte)}, there{reinterpret_cast<void*>(address), sizeof(byte)};
  return process_vm_readv(pid, &here, 1, &there, 1, 0) > 0;
}

bool TakesADescriptor(pid_t pid) {
  int process = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (process < 0) return false;
  return syscall(SYS_pidfd_getfd, process, 2, 0) >= 0;
}

// Itself, where it cannot make a process.
bool InAChild(const std::function<bool()>& work) {
  pid_t child = fork();
  if (child < 0) return work();
  if (child == 0) _exit(work() ? 0 : 1);
  int status = 1;
  return waitpid(child, &status, 0) == child && status == 0;
}

// With the child's end it is let go.
bool Traces(pid_t pid) {
  return InAChild([pid] { return ptrace(PTRACE_SEIZE, pid, nullptr, nullptr) == 0; });
}

void AttackProcess(const std::string& role, pid_t pid) {
  const std::string folder = "/proc/" + std::to_string(pid);
  Attack(role + " signal", [&] { return kill(pid, 0) == 0; });
  Attack(role + " signal by pidfd", [&] {
    int process = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
    return process >= 0 && syscall(SYS_pidfd_send_signal, process, 0, nullptr, 0) == 0;
  });
  Attack(role + " ptrace", [&] { return Traces(pid); });
  Attack(role + " process_vm_readv", [&] { return ReadsMemory(pid); });
  Attack(role + " pidfd_getfd", [&] { return TakesADescriptor(pid); });
  Attack(role + " kcmp", [&] { return syscall(SYS_kcmp, getpid(), pid, 1, 0, 0) >= 0; });
  Attack(role + " mem", [&] { return Opens(folder + "/mem", O_RDWR); });
  Attack(role + " environ", [&] { return Opens(folder + "/environ", O_RDONLY); });
  Attack(role + " maps", [&] { return Opens(folder + "/maps", O_RDONLY); });
  Attack(role + " fd", [&] { return Lists(folder + "/fd"); });
  Attack(role + " map_files", [&] { return Lists(folder + "/map_files"); });
  Attack(role + " root", [&] { return Lists(folder + "/root/"); });
  Attack(role + " cwd", [&] { return Lists(folder + "/cwd/"); });
  Attack(role + " rings", [&] { return MapsARing(folder); });
  Attack(role + " priority", [&] {
    sched_param parameter{};
    return sched_setscheduler(pid, SCHED_OTHER, &parameter) == 0;
  });
}

bool Connects(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
  for (int kind : {SOCK_SEQPACKET, SOCK_STREAM}) {
    int made = socket(AF_UNIX, kind, 0);
    int result = connect(made, reinterpret_cast<sockaddr*>(&address), sizeof(address));
    int error = errno;
    close(made);
    errno = error;
    if (result == 0) return true;
  }
  return false;
}

bool ConnectsToPort(int port) {
  int made = socket(AF_INET, SOCK_STREAM, 0);
  if (made < 0) return false;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  bool good = connect(made, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  close(made);
  return good;
}

// What needs no target. Each is forbidden to workers, and so to none by chance.
void AttackHost() {
  Attack("every process signal", [] { return kill(-1, 0) == 0; });
  Attack("host setuid", [] { return setuid(0) == 0 && setuid(getuid()) == 0; });
  Attack("host user namespace",
         [] { return InAChild([] { return unshare(CLONE_NEWUSER) == 0; }); });
  // Where it succeeds nothing of the host may change.
  Attack("host mount", [] {
    return InAChild([] {
      return unshare(CLONE_NEWNS) == 0 &&
             mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
    });
  });
  Attack("host internet socket", [] { return socket(AF_INET, SOCK_DGRAM, 0) >= 0; });
  Attack("host netlink socket", [] { return socket(AF_NETLINK, SOCK_RAW, 0) >= 0; });
  Attack("host perf_event_open", [] {
    char attributes[128] = {};
    attributes[0] = 1;
    attributes[4] = 112;
    return syscall(SYS_perf_event_open, attributes, 0, -1, -1, 0) >= 0;
  });
  Attack("host keyctl", [] { return syscall(SYS_keyctl, 0, -3, 1) >= 0; });
  Attack("host io_uring", [] {
    char parameters[120] = {};
    return syscall(SYS_io_uring_setup, 1, parameters) >= 0;
  });
  Attack("host bpf", [] {
    char attributes[64] = {};
    attributes[0] = 2, attributes[4] = 4, attributes[8] = 4, attributes[12] = 1;
    return syscall(SYS_bpf, 0, attributes, sizeof(attributes)) >= 0;
  });
  Attack("host device memory", [] { return Opens("/dev/mem", O_RDONLY); });
  Attack("host shared memory segment", [] { return shmget(0x4c57, 0, 0) >= 0; });
  Attack("host homes", [] { return Lists("/root/") || Lists("/home/"); });
  Attack("host etc", [] { return Opens("/etc/passwd", O_RDONLY); });
  Attack("host write", [] { return Opens("/usr/bin/env", O_WRONLY); });
}

void AttackTargets(std::ifstream& targets) {
  AttackHost();
  std::string kind, name, value;
  while (targets >> kind >> name >> value) {
    if (kind == "process") AttackProcess(name, std::atoi(value.c_str()));
    if (kind == "file") Attack(name + " read", [&] { return Opens(value, O_RDONLY); });
    if (kind == "folder") Attack(name + " list", [&] { return Lists(value); });
    if (kind == "socket") Attack(name + " connect", [&] { return Connects(value); });
    if (kind == "port") {
      Attack(name + " connect", [&] { return ConnectsToPort(std::atoi(value.c_str())); });
    }
  }
  Say("attack over");
}

// The control socket: the one of the first inherited descriptors that is a socket.
int ControlSocket() {
  for (int number = 3; number < 6; ++number) {
    struct stat status {};
    if (fstat(number, &status) == 0 && S_ISSOCK(status.st_mode)) return number;
  }
  return -1;
}

void Probe() {
  pollfd opening{ControlSocket(), POLLIN, 0};
  poll(&opening, 1, -1);
  const std::string cache = "/cache/compiled/";
  std::string seen, read;
  for (int tries = 0; tries < 200; ++tries) {
    std::ofstream(cache + "by-" + std::to_string(getuid())) << "kernel of " << getuid() << "\n";
    if (Lists(cache)) break;
    usleep(10'000);
  }
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(cache, none)) {
    seen += " " + entry.path().filename().string();
    std::string line;
    std::ifstream file(entry.path());
    if (std::getline(file, line)) read += " " + entry.path().filename().string();
  }
  Say("probe of " + std::to_string(getuid()) + " sees" + seen);
  Say("probe of " + std::to_string(getuid()) + " reads" + read);
}

// As server/worker/process/main.cc.
bool StandsBehindWalls(std::span<char* const> words) {
  int pid = 0;
  std::vector<std::string> options = longwire::worker::TakeSettings(words, &pid);
  longwire::worker::Walls walls;
  for (size_t i = 0; i + 1 < options.size(); ++i) {
    if (options[i] == "--system-calls") {
      longwire::worker::ParseSystemCalls(options[i + 1], &walls.system_calls);
    }
    if (options[i] == "--processes") walls.processes = std::atoi(options[i + 1].c_str());
  }
  return longwire::worker::StandBehind(walls) == nullptr;
}

}  // namespace

int main(int count, char** words) {
  log_file = fcntl(2, F_DUPFD_CLOEXEC, 10);
  const std::filesystem::path here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  std::ifstream targets(here / "targets");
  const bool probes = std::filesystem::exists(here / "probe");
  if (!targets && !probes) {
    const char* worker = getenv("LONGWIRE_TEST_REAL_WORKER");
    execv(worker, words);
    Say(std::string("attacker: ") + strerror(errno));
    return 127;
  }
  if (!StandsBehindWalls(std::span(words, static_cast<size_t>(count)).subspan(1))) {
    Say("attacker: no walls");
    return 1;
  }
  if (!targets) {
    Probe();
    return 0;
  }
  AttackTargets(targets);
  while (true) pause();
}
