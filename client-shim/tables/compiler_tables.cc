// The tables that compilers in the program ask for: a cache of what they compiled. NVRTC 13.0 and
// nvJitLink 13.0 make a key of their input, look it up, compile if it is not there, insert the
// result. Signatures and results were found by tracing both on driver 580 (H100).

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <optional>
#include <vector>

#include "client-shim/tables/compile_cache.h"
#include "client-shim/tables/table.h"

namespace longwire::shim {
namespace {

// Which multiprocessors lie together, which cuBLASLt and cuSPARSELt ask for: every slot refuses.
// cuBLASLt 13.1 calls slot 4 without looking whether it got a table (natively it gets two arrays
// of bytes, which slot 13 frees), and goes on without them when the call fails.
constexpr size_t kClusterWords = 17;
// Slot 6 must be there: NVRTC looks for it in CLUSTER, as slot 13, if this table is smaller.
constexpr size_t kWords = 7;

// Counts in a key; another number makes all older entries unknown.
constexpr uint64_t kKeyVersion = 1;

const std::optional<CompileCache>& Cache() {
  static const auto* cache = new std::optional<CompileCache>(CompileCache::FromEnvironment());
  return *cache;
}

// `kind`: 1 of machine code, 2 of PTX. `host` and `build` name the compiler: "HOST64" and its date.
CUresult MakeKey(void** key, uint32_t kind, const void* input, uint32_t bytes, const char* options,
                 const char* host, const char* build, uint32_t architecture, uint32_t flags) {
  if (key == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *key = nullptr;
  if (input == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (!Cache()) return CUDA_ERROR_NOT_SUPPORTED;
  CompileKey fields;
  for (uint64_t number : {kKeyVersion, uint64_t{kind}, uint64_t{architecture}, uint64_t{flags}}) {
    fields.Add(number);
  }
  for (const char* text : {options, host, build}) fields.Add(text == nullptr ? "" : text);
  fields.Add(std::span(static_cast<const std::byte*>(input), bytes));
  *key = new (std::nothrow) wire::Digest(fields.Finish());
  return *key == nullptr ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

CUresult FreeKey(void* key) {
  delete static_cast<wire::Digest*>(key);
  return CUDA_SUCCESS;
}

// The caller copies the bytes and gives them back by FreeFound.
CUresult Find(void* key, uint32_t, void** data, uint32_t* bytes) {
  if (key == nullptr || data == nullptr || bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *data = nullptr;
  *bytes = 0;
  if (!Cache()) return CUDA_ERROR_NOT_SUPPORTED;
  auto found = Cache()->Find(*static_cast<wire::Digest*>(key));
  if (!found || found->empty() || found->size() > UINT32_MAX) return CUDA_ERROR_NOT_FOUND;
  void* copy = malloc(found->size());
  if (copy == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  std::memcpy(copy, found->data(), found->size());
  *data = copy;
  *bytes = static_cast<uint32_t>(found->size());
  return CUDA_SUCCESS;
}

CUresult Insert(void* key, uint32_t, const void* data, uint32_t bytes) {
  if (key == nullptr || data == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (!Cache()) return CUDA_ERROR_NOT_SUPPORTED;
  bool kept = Cache()->Insert(*static_cast<wire::Digest*>(key),
                              std::span(static_cast<const std::byte*>(data), bytes));
  return kept ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

CUresult FreeFound(void* data) {
  free(data);
  return CUDA_SUCCESS;
}

}  // namespace

const void* const* CompileCacheTable() {
  static const auto table = [] {
    auto t = RefusingTable<kWords>();
    t[1] = Slot(&MakeKey);
    t[2] = Slot(&FreeKey);
    t[3] = Slot(&Find);
    t[4] = Slot(&Insert);
    t[6] = Slot(&FreeFound);
    return t;
  }();
  return table.data();
}

const void* const* ClusterTable() {
  static const auto table = RefusingTable<kClusterWords>();
  return table.data();
}

}  // namespace longwire::shim
