// A libnvidia-ml.so.1 whose devices are as a file says: nvml.txt beside it, a name and a number on
// each line. What the file does not name this library does not know; it is read again at each
// question, and a number of "xid" that was not there before is an error of that kind.
#include <dlfcn.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <thread>

namespace {

constexpr int kSuccess = 0, kNotSupported = 3, kTimeout = 10;

char the_device, the_set;
unsigned long long last_xid = 0;

std::map<std::string, unsigned long long> Values() {
  Dl_info own{};
  dladdr(&the_device, &own);
  std::ifstream file(std::filesystem::path(own.dli_fname).replace_filename("nvml.txt"));
  std::map<std::string, unsigned long long> values;
  std::string name;
  for (unsigned long long value = 0; file >> name >> value;) values[name] = value;
  return values;
}

template <class Number>
int Tell(const std::string& name, Number* value) {
  auto values = Values();
  auto found = values.find(name);
  if (found == values.end()) return kNotSupported;
  *value = static_cast<Number>(found->second);
  return kSuccess;
}

struct Utilization {
  unsigned gpu, memory;
};
struct Event {
  void* device;
  unsigned long long type, data;
  unsigned instances[2];
};

}  // namespace

#define FAKE extern "C" __attribute__((visibility("default")))

FAKE int nvmlInit_v2() { return kSuccess; }
FAKE int nvmlShutdown() { return kSuccess; }
FAKE int nvmlDeviceGetHandleByUUID(const char*, void** device) {
  *device = &the_device;
  return kSuccess;
}
FAKE int nvmlDeviceGetPowerUsage(void*, unsigned* value) { return Tell("power", value); }
FAKE int nvmlDeviceGetEnforcedPowerLimit(void*, unsigned* value) {
  return Tell("power_limit", value);
}
FAKE int nvmlDeviceGetTemperature(void*, unsigned sensor, unsigned* value) {
  return sensor == 0 ? Tell("temperature", value) : kNotSupported;
}
FAKE int nvmlDeviceGetClockInfo(void*, unsigned clock, unsigned* value) {
  return Tell("clock" + std::to_string(clock), value);
}
FAKE int nvmlDeviceGetUtilizationRates(void*, Utilization* used) {
  return Tell("gpu", &used->gpu) == kSuccess ? Tell("memory", &used->memory) : kNotSupported;
}
FAKE int nvmlDeviceGetCurrentClocksThrottleReasons(void*, unsigned long long* reasons) {
  return Tell("reasons", reasons);
}
FAKE int nvmlDeviceGetTotalEccErrors(void*, unsigned kind, unsigned since,
                                     unsigned long long* all) {
  return since == 0 ? Tell("ecc" + std::to_string(kind), all) : kNotSupported;
}
FAKE int nvmlEventSetCreate(void** set) {
  *set = &the_set;
  return Tell("xid", &last_xid);
}
FAKE int nvmlEventSetFree(void*) { return kSuccess; }
FAKE int nvmlDeviceRegisterEvents(void*, unsigned long long, void*) { return kSuccess; }
FAKE int nvmlEventSetWait_v2(void*, Event* event, unsigned milliseconds) {
  for (; milliseconds >= 50; milliseconds -= 50) {
    unsigned long long xid = last_xid;
    if (Tell("xid", &xid) == kSuccess && xid != last_xid) {
      last_xid = xid;
      *event = {&the_device, 8, xid, {}};
      return kSuccess;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return kTimeout;
}
