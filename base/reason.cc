#include "base/reason.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <system_error>

namespace longwire::base {
namespace {

const char* program_name = "longwire";

const char* RemedyOf(int error) {
  switch (error) {
    case EMFILE:
      return "; raise its limit on descriptors (ulimit -n, LimitNOFILE= of a service)";
    case ENFILE:
      return "; this host's descriptors are used up: raise fs.file-max";
    case ENOMEM:
      return "; free memory on this host, or raise the limits on it (ulimit -v, MemoryMax= of a "
             "service)";
    case ENOSPC:
    case EDQUOT:
      return "; free some space on that file system";
    case EFBIG:
      return "; raise the limit on the size of files, which shared memory counts as (ulimit -f)";
    case EROFS:
      return "; choose a folder that can be written to";
    default:
      return "";
  }
}

[[noreturn]] void Terminate() {
  std::string why;
  try {
    std::rethrow_exception(std::current_exception());
  } catch (const std::bad_alloc&) {
    why = Reason(ENOMEM);
  } catch (const std::system_error& problem) {
    why = ReasonOfNoThread(problem.code().value());
  } catch (...) {
    std::abort();
  }
  dprintf(STDERR_FILENO, "%s: ends, because the system refuses what it needs: %s\n", program_name,
          why.c_str());
  _exit(kSystemRefused);
}

}  // namespace

std::string Reason(int error) { return std::string(std::strerror(error)) + RemedyOf(error); }

std::string ReasonOfNoThread(int error) {
  if (error != EAGAIN) return Reason(error);
  return "no process or thread can be started; raise the limits on them (ulimit -u, TasksMax= of a "
         "service, pids.max of a container)";
}

void SayWhyTerminated(const char* program) {
  program_name = program;
  std::set_terminate(Terminate);
}

}  // namespace longwire::base
