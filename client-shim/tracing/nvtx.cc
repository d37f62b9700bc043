// Ranges of NVTX. The header that programs are compiled with calls this library's
// InitializeInjectionNvtx2 at its first call, if NVTX_INJECTION64_PATH names it, which longwire
// trace -o sees to; else it finds nothing, and no function here is ever called.
//
// Ranges of one thread (push and pop) are noted. Those that begin on one thread and may end on
// another (start and end), and marks, are not.
#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "client-shim/session/process_state.h"
#include "client-shim/support/never_destroyed.h"
#include "client-shim/support/threads.h"
#include "client-shim/tracing/recorder.h"

namespace longwire::shim {
namespace {

constexpr size_t kOpenRangeLimit = 4096;  // of a thread; deeper ones are not noted
constexpr size_t kNameLimit = 64 << 10;   // that programs register
constexpr size_t kLongestName = 1 << 10;  // bytes

struct OpenRange {
  nvtxDomainHandle_t domain = nullptr;
  uint64_t began = 0;  // 0: while nothing was noted
  std::string name;
};

std::vector<OpenRange>& OpenRanges() {
  thread_local std::vector<OpenRange> ranges;
  return ranges;
}

struct RegisteredNames {
  base::Mutex mutex{base::ranks::kNvtxNames};
  std::set<std::string> names LONGWIRE_GUARDED_BY(mutex);
};

RegisteredNames& Registered() {
  static NeverDestroyed<RegisteredNames> names;
  return *names;
}

std::string NameOf(const nvtxEventAttributes_t* attributes) {
  if (attributes == nullptr) return {};
  if (attributes->messageType == NVTX_MESSAGE_TYPE_ASCII && attributes->message.ascii != nullptr) {
    return attributes->message.ascii;
  }
  const auto* registered = reinterpret_cast<const std::string*>(attributes->message.registered);
  bool known = attributes->messageType == NVTX_MESSAGE_TYPE_REGISTERED && registered != nullptr;
  return known ? *registered : "range";
}

int Push(nvtxDomainHandle_t domain, std::string name) {
  std::vector<OpenRange>& ranges = OpenRanges();
  const auto depth = static_cast<int>(ranges.size());
  if (ranges.size() >= kOpenRangeLimit) return depth;
  name.resize(std::min(name.size(), kLongestName));
  ranges.push_back({domain, IsRecording() ? TraceNow() : 0, std::move(name)});
  return depth;
}

// Ranges of two domains need not lie within each other: what is not the newest is forgotten.
int Pop(nvtxDomainHandle_t domain) {
  std::vector<OpenRange>& ranges = OpenRanges();
  for (size_t i = ranges.size(); i-- > 0;) {
    if (ranges[i].domain != domain) continue;
    OpenRange range = std::move(ranges[i]);
    const bool newest = i + 1 == ranges.size();
    ranges.erase(ranges.begin() + static_cast<std::ptrdiff_t>(i));
    const bool ours = CurrentProcessState() == ProcessState::kReady;  // not of a forked child
    if (newest && range.began != 0 && ours && IsRecording()) {
      TheRecorder().Range({ThisThread().number, range.began, TraceNow(), std::move(range.name)});
    }
    return static_cast<int>(i);
  }
  return -1;
}

int PushA(const char* message) { return Push(nullptr, message == nullptr ? "range" : message); }
int PushEx(const nvtxEventAttributes_t* attributes) { return Push(nullptr, NameOf(attributes)); }
int PopNewest() { return Pop(nullptr); }
int DomainPushEx(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* attributes) {
  return Push(domain, NameOf(attributes));
}

nvtxDomainHandle_t DomainCreateA(const char* name) {
  RegisteredNames& registered = Registered();
  base::MutexLock lock(registered.mutex);
  if (registered.names.size() >= kNameLimit) return nullptr;
  const std::string& kept = *registered.names.insert(name == nullptr ? "" : name).first;
  return reinterpret_cast<nvtxDomainHandle_t>(const_cast<std::string*>(&kept));
}

nvtxStringHandle_t RegisterStringA(nvtxDomainHandle_t, const char* text) {
  return reinterpret_cast<nvtxStringHandle_t>(DomainCreateA(text));
}

template <class Function>
void Set(NvtxFunctionTable table, unsigned size, unsigned place, Function* function) {
  if (place < size && table[place] != nullptr) {
    *table[place] = reinterpret_cast<NvtxFunctionPointer>(function);
  }
}

}  // namespace
}  // namespace longwire::shim

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(
    NvtxGetExportTableFunc_t get_table) {
  namespace shim = longwire::shim;
  const auto* callbacks =
      static_cast<const NvtxExportTableCallbacks*>(get_table(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (callbacks == nullptr || callbacks->struct_size < sizeof(*callbacks)) return 0;
  if (callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &table, &size) == 0) return 0;
  shim::Set(table, size, NVTX_CBID_CORE_RangePushA, &shim::PushA);
  shim::Set(table, size, NVTX_CBID_CORE_RangePushEx, &shim::PushEx);
  shim::Set(table, size, NVTX_CBID_CORE_RangePop, &shim::PopNewest);
  if (callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size) == 0) return 1;
  shim::Set(table, size, NVTX_CBID_CORE2_DomainRangePushEx, &shim::DomainPushEx);
  shim::Set(table, size, NVTX_CBID_CORE2_DomainRangePop, &shim::Pop);
  shim::Set(table, size, NVTX_CBID_CORE2_DomainCreateA, &shim::DomainCreateA);
  shim::Set(table, size, NVTX_CBID_CORE2_DomainRegisterStringA, &shim::RegisterStringA);
  return 1;
}
