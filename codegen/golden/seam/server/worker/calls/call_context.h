// What generated dispatch asks of the worker: here a table of handles and nothing else.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <string_view>

#include "longwire/driver_table.h"
#include "wire/buffer.h"

namespace longwire::worker {

class CallContext {
 public:
  static constexpr uint64_t kIdOffset = 0x1000;  // an id is never the driver's own handle

  explicit CallContext(const DriverTable& driver) : driver_(driver) {}

  const DriverTable& driver() const { return driver_; }
  CUstream driver_stream() const { return stream; }

  template <class Handle>
  CUresult Resolve(uint64_t id, Handle* handle) {
    if (id == 0) return CUDA_SUCCESS;
    if (!handles.contains(id)) return CUDA_ERROR_INVALID_HANDLE;
    *handle = reinterpret_cast<Handle>(handles[id]);
    return CUDA_SUCCESS;
  }
  template <class Handle>
  uint64_t Publish(Handle handle) {
    if (handle == nullptr) return 0;
    const uint64_t id = reinterpret_cast<uint64_t>(handle) + kIdOffset;
    handles[id] = handle;
    return id;
  }
  template <class Handle>
  void Forget(uint64_t id) {
    handles.erase(id);
  }
  CUresult ResolveDevice(int32_t ordinal, CUdevice* device) {
    if (ordinal < 0) return CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal + 10;
    return CUDA_SUCCESS;
  }
  int32_t DeviceOrdinal(CUdevice device) { return device - 10; }
  std::string_view Keep(std::string text) { return kept_.emplace_back(std::move(text)); }

  template <class Reply>
  void Return(CUresult code, const Reply& reply) {
    result = code;
    reply.Encode(answer);
  }
  void Fail(CUresult code) { result = code; }

  CUstream stream = nullptr;
  CUresult result = CUDA_ERROR_UNKNOWN;
  wire::Writer answer;
  static inline std::map<uint64_t, void*> handles;

 private:
  const DriverTable& driver_;
  std::deque<std::string> kept_;
};

}  // namespace longwire::worker
