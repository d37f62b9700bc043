#include "client-shim/support/user_faults.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace longwire::shim {

wire::Descriptor OpenUserFaults() {
  constexpr int kFlags = O_CLOEXEC | O_NONBLOCK;
  wire::Descriptor faults(wire::AboveStandard(static_cast<int>(syscall(SYS_userfaultfd, kFlags))));
  if (!faults.valid()) {
    const wire::Descriptor device = wire::OpenFile("/dev/userfaultfd", O_RDWR);
    if (!device.valid()) return {};
    faults.Reset(wire::AboveStandard(ioctl(device.get(), USERFAULTFD_IOC_NEW, kFlags)));
  }
  uffdio_api api{UFFD_API, 0, 0};
  if (faults.valid() && ioctl(faults.get(), UFFDIO_API, &api) != 0) faults.Reset();
  return faults;
}

}  // namespace longwire::shim
