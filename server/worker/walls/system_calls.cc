#include "server/worker/walls/system_calls.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <span>
#include <string_view>

#include "longwire/guard_switches.h"
#include "server/worker/walls/system_call_log.h"

namespace longwire::worker {
namespace {

struct Call {
  std::string_view name;
  int number;
};

#define CALL(name) \
  Call { #name, SYS_##name }

// Made while a session runs, many times a second: the filter finds them at once.
constexpr Call kHot[] = {CALL(futex), CALL(ioctl), CALL(read),        CALL(write),
                         CALL(poll),  CALL(ppoll), CALL(sched_yield), CALL(clock_nanosleep)};

// What the C library, the worker and every driver need. Sorted.
constexpr Call kEvery[] = {CALL(access),
                           CALL(arch_prctl),
                           CALL(brk),
                           CALL(chmod),
                           CALL(clock_getres),
                           CALL(clock_gettime),
                           CALL(close),
                           CALL(close_range),
                           CALL(copy_file_range),
                           CALL(dup),
                           CALL(dup2),
                           CALL(dup3),
                           CALL(epoll_create1),
                           CALL(epoll_ctl),
                           CALL(epoll_pwait),
                           CALL(epoll_wait),
                           CALL(eventfd2),
                           CALL(exit),
                           CALL(exit_group),
                           CALL(faccessat),
                           CALL(faccessat2),
                           CALL(fadvise64),
                           CALL(fallocate),
                           CALL(fchmod),
                           CALL(fchmodat),
                           CALL(fcntl),
                           CALL(fdatasync),
                           CALL(flock),
                           CALL(fstat),
                           CALL(fstatfs),
                           CALL(fsync),
                           CALL(ftruncate),
                           CALL(get_mempolicy),
                           CALL(get_robust_list),
                           CALL(getcpu),
                           CALL(getcwd),
                           CALL(getdents64),
                           CALL(getegid),
                           CALL(geteuid),
                           CALL(getgid),
                           CALL(getpeername),
                           CALL(getpid),
                           CALL(getppid),
                           CALL(getpriority),
                           CALL(getrandom),
                           CALL(getresgid),
                           CALL(getresuid),
                           CALL(getrlimit),
                           CALL(getrusage),
                           CALL(getsockname),
                           CALL(getsockopt),
                           CALL(gettid),
                           CALL(gettimeofday),
                           CALL(getuid),
                           CALL(lseek),
                           CALL(lstat),
                           CALL(madvise),
                           CALL(mbind),
                           CALL(membarrier),
                           CALL(memfd_create),
                           CALL(mincore),
                           CALL(mkdir),
                           CALL(mkdirat),
                           CALL(mlock),
                           CALL(mlock2),
                           CALL(mmap),
                           CALL(mprotect),
                           CALL(mremap),
                           CALL(msync),
                           CALL(munlock),
                           CALL(munmap),
                           CALL(nanosleep),
                           CALL(newfstatat),
                           CALL(open),
                           CALL(openat),
                           CALL(pause),
                           CALL(pipe),
                           CALL(pipe2),
                           CALL(pkey_alloc),
                           CALL(pkey_free),
                           CALL(pkey_mprotect),
                           CALL(pread64),
                           CALL(preadv),
                           CALL(preadv2),
                           CALL(pselect6),
                           CALL(pwrite64),
                           CALL(pwritev),
                           CALL(pwritev2),
                           CALL(readahead),
                           CALL(readlink),
                           CALL(readlinkat),
                           CALL(readv),
                           CALL(recvfrom),
                           CALL(recvmmsg),
                           CALL(recvmsg),
                           CALL(rename),
                           CALL(renameat),
                           CALL(renameat2),
                           CALL(restart_syscall),
                           CALL(rmdir),
                           CALL(rseq),
                           CALL(rt_sigaction),
                           CALL(rt_sigpending),
                           CALL(rt_sigprocmask),
                           CALL(rt_sigreturn),
                           CALL(rt_sigsuspend),
                           CALL(rt_sigtimedwait),
                           CALL(sched_get_priority_max),
                           CALL(sched_get_priority_min),
                           CALL(sched_getaffinity),
                           CALL(sched_getattr),
                           CALL(sched_getparam),
                           CALL(sched_getscheduler),
                           CALL(sched_setaffinity),
                           CALL(sched_setscheduler),
                           CALL(select),
                           CALL(sendmmsg),
                           CALL(sendmsg),
                           CALL(sendto),
                           CALL(set_mempolicy),
                           CALL(set_robust_list),
                           CALL(set_tid_address),
                           CALL(setpriority),
                           CALL(setsockopt),
                           CALL(shutdown),
                           CALL(sigaltstack),
                           CALL(signalfd4),
                           CALL(stat),
                           CALL(statfs),
                           CALL(statx),
                           CALL(sysinfo),
                           CALL(timerfd_create),
                           CALL(timerfd_gettime),
                           CALL(timerfd_settime),
                           CALL(times),
                           CALL(truncate),
                           CALL(umask),
                           CALL(uname),
                           CALL(unlink),
                           CALL(unlinkat),
                           CALL(utimensat),
                           CALL(writev)};

// Besides these, what a branch needs. Sorted.
struct Branch {
  int first;  // of the branches; up to the next entry's
  std::span<const Call> more;
};
// Learned with 580.159 on an H100. It makes a socket for other processes of its user, and tries to
// reach MPS: without these cuInit answers 304.
constexpr Call k580[] = {CALL(bind), CALL(connect), CALL(listen), CALL(symlink)};
constexpr Branch kBranches[] = {{0, {}}, {580, k580}};

constexpr bool Sorted(std::span<const Call> calls) {
  return std::ranges::is_sorted(calls, {}, &Call::name);
}
static_assert(Sorted(kEvery) && std::ranges::is_sorted(kBranches, {}, &Branch::first));
static_assert(std::ranges::all_of(kBranches, [](const Branch& b) { return Sorted(b.more); }));

constexpr uint32_t kX32 = 0x40000000;  // calls of the other numbering

sock_filter Load(size_t offset) {
  return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset));
}

// The next step is taken only if the comparison holds; else the one behind it.
sock_filter If(int comparison, uint32_t value) {
  return BPF_JUMP(static_cast<uint16_t>(BPF_JMP | comparison | BPF_K), value, 0, 1);
}

sock_filter Return(uint32_t action) { return BPF_STMT(BPF_RET | BPF_K, action); }

// The call, if the lower half of its first argument is `value`.
void AllowIf(int call, int comparison, uint32_t value, std::vector<sock_filter>* program) {
  program->insert(program->end(),
                  {BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call), 0, 4),
                   Load(offsetof(seccomp_data, args[0])), If(comparison, value),
                   Return(SECCOMP_RET_ALLOW), Load(offsetof(seccomp_data, nr))});
}

std::vector<sock_filter> Program(int branch, uint32_t refuse) {
  std::vector<sock_filter> program = {Load(offsetof(seccomp_data, arch)),
                                      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
                                      Return(SECCOMP_RET_ERRNO | EPERM),
                                      Load(offsetof(seccomp_data, nr)),
                                      If(BPF_JGE, kX32),
                                      Return(SECCOMP_RET_ERRNO | EPERM)};
  for (int call : AllowedCalls(branch)) {
    program.insert(program.end(),
                   {If(BPF_JEQ, static_cast<uint32_t>(call)), Return(SECCOMP_RET_ALLOW)});
  }
  // Its flags cannot be read here: the C library then uses clone.
  program.insert(program.end(), {If(BPF_JEQ, SYS_clone3), Return(SECCOMP_RET_ERRNO | ENOSYS)});
  AllowIf(SYS_clone, BPF_JSET, CLONE_THREAD, &program);
  const auto self = static_cast<uint32_t>(getpid());
  AllowIf(SYS_tgkill, BPF_JEQ, self, &program);
  AllowIf(SYS_kill, BPF_JEQ, self, &program);
  if (branch != 0) AllowIf(SYS_socket, BPF_JEQ, AF_UNIX, &program);
  AllowIf(SYS_prctl, BPF_JEQ, PR_SET_NAME, &program);
  AllowIf(SYS_prlimit64, BPF_JEQ, 0, &program);
  AllowIf(SYS_prlimit64, BPF_JEQ, self, &program);
  program.push_back(Return(refuse));
  return program;
}

}  // namespace

bool ParseSystemCalls(const std::string& word, SystemCalls* mode) {
  constexpr std::string_view kWords[] = {"enforce", "log", "off"};
  const auto* found = std::ranges::find(kWords, word);
  *mode = static_cast<SystemCalls>(found - std::begin(kWords));
  return found != std::end(kWords);
}

int DriverBranch() {
  std::ifstream file("/sys/module/nvidia/version");
  int branch = 0;
  return file >> branch ? branch : 0;
}

std::vector<int> AllowedCalls(int branch) {
#if LONGWIRE_GUARD_SWITCHES
  // All but the one that the log needs is then in the log: so a list is learned.
  if (getenv("LONGWIRE_TEST_NO_CALLS") != nullptr) return {SYS_write};
#endif
  std::vector<int> allowed;
  auto add = [&](std::span<const Call> calls) {
    for (const Call& call : calls) allowed.push_back(call.number);
  };
  add(kHot);
  add(kEvery);
  const auto* after = std::ranges::upper_bound(kBranches, branch, {}, &Branch::first);
  if (after != std::begin(kBranches)) add((after - 1)->more);
  return allowed;
}

bool LimitSystemCalls(SystemCalls mode, int branch, int log) {
  if (mode == SystemCalls::kOff) return true;
  const bool logs = mode == SystemCalls::kLog;
  std::vector<sock_filter> program =
      Program(branch, logs ? SECCOMP_RET_USER_NOTIF : SECCOMP_RET_ERRNO | EPERM);
  sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  // Its thread is older than the filter, and so not held by it.
  const int tell = logs ? StartSystemCallLog(log) : -1;
  if (logs && tell < 0) return false;
  const unsigned flags = logs ? SECCOMP_FILTER_FLAG_NEW_LISTENER : 0;
  const auto made = static_cast<int>(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &filter));
  if (!logs) return made == 0;
  return write(tell, &made, sizeof(made)) == sizeof(made) && made >= 0;
}

}  // namespace longwire::worker
