// Settings of core dumps of the device. No dump is ever made: it would be of the server's process,
// on its host. The settings answer as natively while dumps are off; switching them on is refused.
#include <unistd.h>

#include <cstring>
#include <map>
#include <string>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "base/try.h"
#include "client-shim/context/context.h"
#include "client-shim/entry/error_log.h"
#include "client-shim/support/never_destroyed.h"
#include "longwire/shim_hand_written.h"

namespace longwire::shim::hand {
namespace {

constexpr size_t kNameBytes = 1024;  // with the end

std::string DefaultName(const char* head) {
  char host[256] = "localhost";
  gethostname(host, sizeof host - 1);
  return std::string(head) + ".cuda." + host + "." + std::to_string(getpid());
}

struct Settings {
  bool trigger_host = true, lightweight = false;
  int flags = CU_COREDUMP_DEFAULT_FLAGS;
  std::string file = DefaultName("core"), pipe = DefaultName("corepipe");
};

struct AllSettings {
  base::Mutex mutex{base::ranks::kCoredumpSettings};
  Settings global LONGWIRE_GUARDED_BY(mutex);
  // By the context's number; those with some of their own.
  std::map<uint32_t, Settings> contexts LONGWIRE_GUARDED_BY(mutex);
};

AllSettings& TheSettings() {
  static NeverDestroyed<AllSettings> settings;
  return *settings;
}

// 0 for an attribute that is none.
size_t BytesOf(CUcoredumpSettings attribute) {
  switch (attribute) {
    case CU_COREDUMP_ENABLE_ON_EXCEPTION:
    case CU_COREDUMP_TRIGGER_HOST:
    case CU_COREDUMP_LIGHTWEIGHT:
    case CU_COREDUMP_ENABLE_USER_TRIGGER:
      return sizeof(bool);
    case CU_COREDUMP_FILE:
    case CU_COREDUMP_PIPE:
      return kNameBytes;
    case CU_COREDUMP_GENERATION_FLAGS:
      return sizeof(int);
    default:
      return 0;
  }
}

CUresult Get(const Settings& settings, CUcoredumpSettings attribute, void* value, size_t* size) {
  size_t bytes = BytesOf(attribute);
  if (bytes == 0 || value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (bytes == kNameBytes) {
    const std::string& name = attribute == CU_COREDUMP_FILE ? settings.file : settings.pipe;
    if (*size <= name.size()) return CUDA_ERROR_INVALID_VALUE;
    std::memcpy(value, name.c_str(), name.size() + 1);
    return CUDA_SUCCESS;
  }
  if (*size < bytes) return CUDA_ERROR_INVALID_VALUE;
  bool answer = (attribute == CU_COREDUMP_TRIGGER_HOST && settings.trigger_host) ||
                (attribute == CU_COREDUMP_LIGHTWEIGHT && settings.lightweight);
  const void* from = &answer;
  if (attribute == CU_COREDUMP_GENERATION_FLAGS) from = &settings.flags;
  std::memcpy(value, from, bytes);
  return CUDA_SUCCESS;
}

CUresult SetName(std::string* name, const void* value, size_t size) {
  size_t length = strnlen(static_cast<const char*>(value), size);
  if (length == 0 || length >= kNameBytes) return CUDA_ERROR_INVALID_VALUE;
  name->assign(static_cast<const char*>(value), length);
  return CUDA_SUCCESS;
}

CUresult Set(Settings* settings, CUcoredumpSettings attribute, const void* value, size_t* size) {
  size_t bytes = BytesOf(attribute);
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (value == nullptr) {
    *size = bytes;
    return CUDA_SUCCESS;
  }
  if (attribute == CU_COREDUMP_FILE) return SetName(&settings->file, value, *size);
  if (attribute == CU_COREDUMP_PIPE) return SetName(&settings->pipe, value, *size);
  if (*size < bytes) return CUDA_ERROR_INVALID_VALUE;
  if (attribute == CU_COREDUMP_GENERATION_FLAGS) {
    std::memcpy(&settings->flags, value, bytes);
    return CUDA_SUCCESS;
  }
  bool wanted = false;
  std::memcpy(&wanted, value, bytes);
  if (attribute == CU_COREDUMP_TRIGGER_HOST) settings->trigger_host = wanted;
  if (attribute == CU_COREDUMP_LIGHTWEIGHT) settings->lightweight = wanted;
  bool enables =
      attribute == CU_COREDUMP_ENABLE_ON_EXCEPTION || attribute == CU_COREDUMP_ENABLE_USER_TRIGGER;
  return enables && wanted ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

// Without the settings' lock: the log may call a function of the program.
CUresult WithReason(CUresult result) {
  if (result == CUDA_ERROR_NOT_SUPPORTED) {
    LogError("a core dump of the device would be one of the server's process: it is not supported");
  }
  return result;
}

}  // namespace

CUresult cuCoredumpGetAttributeGlobal(CUcoredumpSettings attrib, void* value, size_t* size) {
  AllSettings& all = TheSettings();
  base::MutexLock lock(all.mutex);
  return Get(all.global, attrib, value, size);
}

CUresult cuCoredumpSetAttributeGlobal(CUcoredumpSettings attrib, void* value, size_t* size) {
  AllSettings& all = TheSettings();
  base::MutexLock lock(all.mutex);
  CUresult result = Set(&all.global, attrib, value, size);
  lock.Unlock();
  return WithReason(result);
}

CUresult cuCoredumpGetAttribute(CUcoredumpSettings attrib, void* value, size_t* size) {
  Context* context = nullptr;
  LONGWIRE_TRY(RequireContext(&context));
  AllSettings& all = TheSettings();
  base::MutexLock lock(all.mutex);
  auto own = all.contexts.find(context->number.load());
  return Get(own == all.contexts.end() ? all.global : own->second, attrib, value, size);
}

CUresult cuCoredumpSetAttribute(CUcoredumpSettings attrib, void* value, size_t* size) {
  Context* context = nullptr;
  LONGWIRE_TRY(RequireContext(&context));
  // These two are of the whole program.
  bool whole = attrib == CU_COREDUMP_ENABLE_USER_TRIGGER || attrib == CU_COREDUMP_PIPE;
  if (whole && value != nullptr) return CUDA_ERROR_NOT_PERMITTED;
  AllSettings& all = TheSettings();
  base::MutexLock lock(all.mutex);
  auto own = all.contexts.try_emplace(context->number.load(), all.global).first;
  CUresult result = Set(&own->second, attrib, value, size);
  lock.Unlock();
  return WithReason(result);
}

}  // namespace longwire::shim::hand
