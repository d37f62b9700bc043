// Arguments for any call by its parameters' types, and by their names where a type says too little:
// what a small, correct program would give. A call may refuse them.
#pragma once

#include <cuda.h>

#include <string_view>
#include <type_traits>

namespace longwire::joined {

// Objects of a session that works, for calls to be made with.
struct Objects {
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  CUevent event = nullptr;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CUgraph graph = nullptr;
  CUdeviceptr memory = 0;
  void* pinned = nullptr;
  void* registered = nullptr;
  void** kernel_parameters = nullptr;
};
Objects& TheObjects();

inline constexpr size_t kNeutralBytes = 64;
// Zeros, for what a call reads or writes by pointer; the thread's own.
void* NeutralRoom();

void NeutralHostFunction(void*);
void NeutralCallback(CUstream, CUresult, void*);

template <class T>
concept Complete = requires {
  sizeof(T);
};

// Of the driver's own objects; those that there are none of are null.
template <class T>
T NeutralHandle() {
  const Objects& objects = TheObjects();
  if constexpr (std::is_same_v<T, CUcontext>) return objects.context;
  if constexpr (std::is_same_v<T, CUstream>) return objects.stream;
  if constexpr (std::is_same_v<T, CUevent>) return objects.event;
  if constexpr (std::is_same_v<T, CUmodule>) return objects.module;
  if constexpr (std::is_same_v<T, CUfunction>) return objects.function;
  if constexpr (std::is_same_v<T, CUgraph>) return objects.graph;
  return nullptr;
}

// Void pointers to what a call takes away, and lists of pointers, by the names of call or
// parameter.
inline void* NeutralVoid(std::string_view call) {
  if (call == "cuMemFreeHost") return TheObjects().pinned;
  return call == "cuMemHostUnregister" ? TheObjects().registered : NeutralRoom();
}
inline void** NeutralVoids(std::string_view name) {
  if (name == "kernelParams") return TheObjects().kernel_parameters;
  return name == "extra" ? nullptr : static_cast<void**>(NeutralRoom());
}

template <class T>
T NeutralPointer([[maybe_unused]] std::string_view call, [[maybe_unused]] std::string_view name) {
  using Target = std::remove_pointer_t<T>;
  if constexpr (std::is_same_v<T, CUhostFn>) {
    return &NeutralHostFunction;
  } else if constexpr (std::is_same_v<T, CUstreamCallback>) {
    return &NeutralCallback;
  } else if constexpr (std::is_function_v<Target>) {
    return nullptr;
  } else if constexpr (std::is_same_v<T, const char*>) {
    return name.find("path") != std::string_view::npos ? "/dev/null" : "name";
  } else if constexpr (std::is_same_v<T, const void*>) {
    return name == "image" ? "the fake driver reads no code" : NeutralRoom();
  } else if constexpr (std::is_same_v<T, void*>) {
    return NeutralVoid(call);
  } else if constexpr (std::is_same_v<T, void**>) {
    return NeutralVoids(name);
  } else if constexpr (std::is_void_v<Target> || Complete<Target>) {
    return static_cast<T>(NeutralRoom());
  } else {
    return NeutralHandle<T>();
  }
}

template <class T>
T NeutralNumber([[maybe_unused]] std::string_view name) {
  if constexpr (std::is_same_v<T, CUdeviceptr>) {
    return TheObjects().memory;
  } else if constexpr (std::is_same_v<T, size_t>) {
    return kNeutralBytes;
  } else if constexpr (std::is_same_v<T, int>) {
    return 0;
  } else {
    return static_cast<T>(name.find("lags") == std::string_view::npos ? 1 : 0);
  }
}

template <class T>
T Neutral([[maybe_unused]] std::string_view call, [[maybe_unused]] std::string_view name) {
  if constexpr (std::is_pointer_v<T>) {
    return NeutralPointer<T>(call, name);
  } else if constexpr (std::is_enum_v<T>) {
    return static_cast<T>(1);
  } else if constexpr (std::is_arithmetic_v<T>) {
    return NeutralNumber<T>(name);
  } else {
    return T{};
  }
}

}  // namespace longwire::joined
