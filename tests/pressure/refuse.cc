// Loaded into a process by LD_PRELOAD: makes the system refuse what a table says, for as long as it
// says so. LW_REFUSE names the table, a file of 4096 bytes that the test changes at any time:
//
//   PROGRAM CALL ERRNO PART       one line for each; the rest of the file is zero
//
// PART is in the file's path or the memory's name; "-" stands for all. "PROGRAM clock SECONDS -"
// sets the clock of the wall ahead, or back.
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

constexpr size_t kBytes = 4096;

// As the C library's syscall, which is one of those below.
long System(long number, ...) {
  va_list list;
  va_start(list, number);
  long words[6];
  for (long& word : words) word = va_arg(list, long);
  va_end(list);
  register long r10 asm("r10") = words[3];
  register long r8 asm("r8") = words[4];
  register long r9 asm("r9") = words[5];
  long result = number;
  asm volatile("syscall"
               : "+a"(result)
               : "D"(words[0]), "S"(words[1]), "d"(words[2]), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  if (result >= 0 || result < -4095) return result;
  errno = static_cast<int>(-result);
  return -1;
}

const char* Table() {
  static const char* table = [] {
    const char* path = getenv("LW_REFUSE");
    long file = path == nullptr ? -1 : System(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return static_cast<const char*>(nullptr);
    long at = System(SYS_mmap, nullptr, kBytes, PROT_READ, MAP_SHARED, file, 0);
    System(SYS_close, file);
    return at == -1 ? nullptr : reinterpret_cast<const char*>(at);
  }();
  return table;
}

// The table's number for this call; 0: nothing is refused. `about` may be null.
long Look(const char* call, const char* about) {
  const char* line = Table();
  while (line != nullptr && *line != '\0') {
    char program[32], name[32], part[128];
    long number = 0;
    if (sscanf(line, "%31s %31s %ld %127s", program, name, &number, part) == 4 &&
        strcmp(name, call) == 0 && strcmp(program, program_invocation_short_name) == 0 &&
        (strcmp(part, "-") == 0 || (about != nullptr && strstr(about, part) != nullptr))) {
      return number;
    }
    line = strchr(line, '\n');
    if (line != nullptr) ++line;
  }
  return 0;
}

bool Refused(const char* call, const char* about = nullptr) {
  int before = errno;
  long number = Look(call, about);
  errno = number != 0 ? static_cast<int>(number) : before;
  return number != 0;
}

bool RefusedFile(const char* call, int descriptor) {
  if (Table() == nullptr || Table()[0] == '\0') return false;
  char link[64], path[512] = "";
  snprintf(link, sizeof(link), "/proc/self/fd/%d", descriptor);
  int before = errno;
  System(SYS_readlink, link, path, sizeof(path) - 1);
  errno = before;
  return Refused(call, path);
}

template <class Function>
Function Next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

int OpenAt(int folder, const char* path, int flags, mode_t mode) {
  if (Refused("open", path)) return -1;
  return static_cast<int>(System(SYS_openat, folder, path, flags, mode));
}

}  // namespace

#define MODE()                                                              \
  va_list list;                                                             \
  va_start(list, flags);                                                    \
  mode_t mode = (flags & (O_CREAT | O_TMPFILE)) ? va_arg(list, mode_t) : 0; \
  va_end(list)

EXPORT int open(const char* path, int flags, ...) {
  MODE();
  return OpenAt(AT_FDCWD, path, flags, mode);
}
EXPORT int open64(const char* path, int flags, ...) {
  MODE();
  return OpenAt(AT_FDCWD, path, flags, mode);
}
EXPORT int openat(int folder, const char* path, int flags, ...) {
  MODE();
  return OpenAt(folder, path, flags, mode);
}
EXPORT int openat64(int folder, const char* path, int flags, ...) {
  MODE();
  return OpenAt(folder, path, flags, mode);
}
EXPORT int __open_2(const char* path, int flags) { return OpenAt(AT_FDCWD, path, flags, 0); }
EXPORT int __open64_2(const char* path, int flags) { return OpenAt(AT_FDCWD, path, flags, 0); }

EXPORT ssize_t write(int descriptor, const void* bytes, size_t count) {
  if (RefusedFile("write", descriptor)) return -1;
  return System(SYS_write, descriptor, bytes, count);
}
EXPORT ssize_t writev(int descriptor, const iovec* parts, int count) {
  if (RefusedFile("write", descriptor)) return -1;
  return System(SYS_writev, descriptor, parts, count);
}
EXPORT int mkdir(const char* path, mode_t mode) {
  return Refused("mkdir", path) ? -1 : static_cast<int>(System(SYS_mkdir, path, mode));
}
EXPORT int memfd_create(const char* name, unsigned flags) {
  return Refused("memfd", name) ? -1 : static_cast<int>(System(SYS_memfd_create, name, flags));
}
EXPORT void* mmap(void* at, size_t bytes, int rights, int flags, int file, off_t offset) {
  if (file >= 0 && RefusedFile("mmap", file)) return MAP_FAILED;
  return reinterpret_cast<void*>(System(SYS_mmap, at, bytes, rights, flags, file, offset));
}
EXPORT void* mmap64(void* at, size_t bytes, int rights, int flags, int file, off_t offset) {
  return mmap(at, bytes, rights, flags, file, offset);
}
EXPORT int socketpair(int domain, int type, int protocol, int* pair) {
  if (Refused("socketpair")) return -1;
  return static_cast<int>(System(SYS_socketpair, domain, type, protocol, pair));
}
EXPORT int socket(int domain, int type, int protocol) {
  return Refused("socket") ? -1 : static_cast<int>(System(SYS_socket, domain, type, protocol));
}
EXPORT int pipe2(int* ends, int flags) {
  return Refused("pipe") ? -1 : static_cast<int>(System(SYS_pipe2, ends, flags));
}
EXPORT int eventfd(unsigned count, int flags) {
  return Refused("eventfd") ? -1 : static_cast<int>(System(SYS_eventfd2, count, flags));
}

EXPORT int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*),
                          void* argument) {
  if (long refused = Look("thread", nullptr)) return static_cast<int>(refused);
  static auto next = Next<decltype(&pthread_create)>("pthread_create");
  return next(thread, attributes, body, argument);
}
EXPORT pid_t fork() {
  static auto next = Next<decltype(&fork)>("fork");
  return Refused("fork") ? -1 : next();
}
// As the client's library calls it: without the arguments that may follow.
EXPORT int clone(int (*body)(void*), void* stack, int flags, void* argument, ...) {
  static auto next = Next<int (*)(int (*)(void*), void*, int, void*, ...)>("clone");
  return Refused("fork") ? -1 : next(body, stack, flags, argument);
}

// Who waits until a time of the wall waits until that of the clock that it reads.
EXPORT long syscall(long number, ...) noexcept {
  va_list list;
  va_start(list, number);
  long words[6];
  for (long& word : words) word = va_arg(list, long);
  va_end(list);
  timespec until{};
  if (number == SYS_futex && (words[1] & FUTEX_CLOCK_REALTIME) != 0 && words[3] != 0) {
    until = *reinterpret_cast<timespec*>(words[3]);
    until.tv_sec -= Look("clock", nullptr);
    words[3] = reinterpret_cast<long>(&until);
  }
  return System(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}

EXPORT int clock_gettime(clockid_t clock, timespec* time) {
  int result = static_cast<int>(System(SYS_clock_gettime, clock, time));
  if (result == 0 && clock == CLOCK_REALTIME) time->tv_sec += Look("clock", nullptr);
  return result;
}
EXPORT int gettimeofday(timeval* time, void*) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  *time = {now.tv_sec, now.tv_nsec / 1000};
  return 0;
}
EXPORT time_t time(time_t* to) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  if (to != nullptr) *to = now.tv_sec;
  return now.tv_sec;
}
