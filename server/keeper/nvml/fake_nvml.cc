// A libnvidia-ml.so.1 for device_links_test.cc: one device, of whose four links the second and the
// last are up. Of the last one it knows no more.
#include <cstdio>
#include <cstring>

namespace {

constexpr int kSuccess = 0, kInvalid = 2, kNotSupported = 3, kNotFound = 6;
constexpr unsigned kLinks = 4, kDescribed = 1, kBare = 3, kStateField = 165;

struct Field {
  unsigned field, scope;
  long long timestamp, latency;
  unsigned type;
  int code;
  unsigned long long value;
};

char the_device;
int users = 0;

int Described(void* device, unsigned link) {
  if (users == 0 || device != &the_device || link >= kLinks) return kInvalid;
  return link == kDescribed ? kSuccess : kNotSupported;
}

}  // namespace

#define FAKE extern "C" __attribute__((visibility("default")))

FAKE int nvmlInit_v2() { return ++users, kSuccess; }
FAKE int nvmlShutdown() { return --users, kSuccess; }

FAKE int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {
  if (std::strcmp(uuid, "GPU-01234567-89ab-cdef-0001-020304050607") != 0) return kNotFound;
  *device = &the_device;
  return kSuccess;
}

// The state of the last link only: as newer devices answer here, older ones below.
FAKE int nvmlDeviceGetFieldValues(void*, int, Field* field) {
  bool known = field->field == kStateField && field->scope == kBare;
  field->code = known ? kSuccess : kNotSupported;
  // The upper half is not part of an answer of this type.
  field->value = known ? 0xabcdef0000000001 : 0;
  return kSuccess;
}

FAKE int nvmlDeviceGetNvLinkState(void* device, unsigned link, unsigned* up) {
  if (device != &the_device || link >= kLinks) return kInvalid;
  *up = link == kDescribed;
  return kSuccess;
}

FAKE int nvmlDeviceGetNvLinkVersion(void* device, unsigned link, unsigned* version) {
  *version = 7;
  return Described(device, link);
}

FAKE int nvmlDeviceGetNvLinkCapability(void* device, unsigned link, unsigned which, unsigned* has) {
  *has = which == 0 || which == 2;
  return Described(device, link);
}

FAKE int nvmlDeviceGetNvLinkRemoteDeviceType(void* device, unsigned link, unsigned* type) {
  *type = 2;
  return Described(device, link);
}

FAKE int nvmlDeviceGetNvLinkRemotePciInfo_v2(void* device, unsigned link, char* info) {
  std::snprintf(info + 36, 32, "00000000:87:00.0");
  return Described(device, link);
}
