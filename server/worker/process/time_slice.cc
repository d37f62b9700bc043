#include "server/worker/process/time_slice.h"

#include <linux/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdarg>
#include <cstring>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"

namespace longwire::worker {
namespace {

constexpr unsigned kRmType = 'F';
constexpr unsigned kRmControl = 0x2A;
constexpr unsigned kRmAlloc = 0x2B;
constexpr uint32_t kChannelGroupClass = 0xA06C;
constexpr uint32_t kSetTimeSlice = 0xA06C0103;  // both: 8 bytes, microseconds
constexpr uint32_t kGetTimeSlice = 0xA06C0104;

// What every allocation's parameters begin with (NVOS21 and NVOS64).
struct AllocHead {
  uint32_t client, parent, object, object_class;
};

// NVOS54_PARAMETERS.
struct Control {
  uint32_t client = 0, object = 0, command = 0, flags = 0;
  alignas(8) uint64_t parameters = 0;
  uint32_t parameter_bytes = 0, status = 0;
};
static_assert(sizeof(Control) == 32);

struct Group {
  int descriptor;
  uint32_t client, object;
  uint64_t first_slice = 0;  // microseconds, what it was made with; 0: not known
};

// Made on first use and never destroyed: the driver's threads outlive main.
struct Groups {
  base::Mutex mutex{base::ranks::kTimeSlices};
  std::vector<Group> seen LONGWIRE_GUARDED_BY(mutex);
  uint32_t microseconds LONGWIRE_GUARDED_BY(mutex) = 0;
};

Groups& TheGroups() {
  static auto* groups = new Groups();
  return *groups;
}

long SystemIoctl(int descriptor, unsigned long request, void* argument) {
  return syscall(SYS_ioctl, descriptor, request, argument);
}

bool Order(const Group& group, uint32_t command, uint64_t* microseconds) {
  Control control;
  control.client = group.client;
  control.object = group.object;
  control.command = command;
  control.parameters = reinterpret_cast<uint64_t>(microseconds);
  control.parameter_bytes = sizeof(*microseconds);
  unsigned long request = _IOC(_IOC_READ | _IOC_WRITE, kRmType, kRmControl, sizeof(control));
  return SystemIoctl(group.descriptor, request, &control) == 0 && control.status == 0;
}

bool Set(Group& group, uint64_t microseconds) {
  uint64_t first = 0;
  if (group.first_slice == 0 && Order(group, kGetTimeSlice, &first)) group.first_slice = first;
  if (microseconds == 0) microseconds = group.first_slice;
  return microseconds != 0 && Order(group, kSetTimeSlice, &microseconds);
}

void OnAllocated(int descriptor, const void* argument) {
  AllocHead head;
  std::memcpy(&head, argument, sizeof(head));
  if (head.object_class != kChannelGroupClass) return;
  Groups& groups = TheGroups();
  base::MutexLock lock(groups.mutex);
  groups.seen.push_back({descriptor, head.client, head.object, 0});
  if (groups.microseconds != 0) Set(groups.seen.back(), groups.microseconds);
}

}  // namespace

int SetTimeSlice(uint32_t microseconds) {
  Groups& groups = TheGroups();
  base::MutexLock lock(groups.mutex);
  if (microseconds == groups.microseconds) return 0;
  groups.microseconds = microseconds;
  int set = 0;
  for (Group& group : groups.seen) set += Set(group, microseconds) ? 1 : 0;
  return set;
}

}  // namespace longwire::worker

// Stands before the C library's for everything that this process loads (exported from the
// executable); passes every call on unchanged.
extern "C" __attribute__((visibility("default"))) int ioctl(int descriptor, unsigned long request,
                                                            ...) {
  va_list arguments;
  va_start(arguments, request);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  long result = longwire::worker::SystemIoctl(descriptor, request, argument);
  if (result == 0 && argument != nullptr && _IOC_TYPE(request) == longwire::worker::kRmType &&
      _IOC_NR(request) == longwire::worker::kRmAlloc && _IOC_SIZE(request) >= 32) {
    longwire::worker::OnAllocated(descriptor, argument);
  }
  return static_cast<int>(result);
}
