#include "wire/descriptor_table.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

namespace longwire::wire {

void PrepareDescriptorTable() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  int room = static_cast<int>(std::min<rlim_t>(limit.rlim_cur, kDescriptorRoom));
  int last = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, room - 1);
  if (last >= 0) close(last);
}

}  // namespace longwire::wire
