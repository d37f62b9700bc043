#include "tests/fuzz/strict_driver.h"

#include <sanitizer/lsan_interface.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "longwire/every_call.h"
#include "server/worker/testing/fake_driver.h"
#include "tests/fuzz/strict_handles.h"

namespace longwire::fuzz {
namespace {

using worker::testing::FakeDriver;

std::atomic<unsigned> interval{0}, calls{0};
std::atomic<CUresult> failure{CUDA_SUCCESS};

bool Fails() { return interval != 0 && ++calls % interval == 0; }

template <class T>
concept Complete = requires {
  sizeof(T);
};

// A pointer to what only the driver knows.
template <class T>
struct HandleTraits {
  static constexpr bool kIs = false;
};
template <class T>
requires(!std::is_void_v<T> && !std::is_function_v<T>) struct HandleTraits<T*> {
  static constexpr bool kIs = !Complete<T>;
};
template <class T>
constexpr bool kIsHandle = HandleTraits<T>::kIs;

template <class T>
constexpr char kType = 0;  // its address names the type

// Streams are the fake driver's, which finds wrong ones itself; every device's primary context is
// a number.
template <class T>
constexpr bool kIsChecked = kIsHandle<T> && !std::is_same_v<T, CUstream>;

template <class Handle>
void Expect(Handle handle, const char* function) {
  if constexpr (kIsChecked<Handle>) {
    bool primary = std::is_same_v<Handle, CUcontext> && (Address)handle == 0x77;
    if (!primary) Handles::All().Expect((Address)handle, &kType<Handle>, function);
  }
}

// Nodes belong to their graph.
template <class Handle>
Handle New(CUgraph graph) {
  constexpr bool owned = std::is_same_v<Handle, CUgraphNode>;
  return (Handle)Handles::All().Make(&kType<Handle>, owned ? (Address)graph : 0);
}

// One entry of the table: looks at the arguments, and sets the results.
template <class... Arguments>
class Call {
 public:
  Call(const char* function, Arguments... arguments)
      : function_(function), arguments_(arguments...) {}

  CUresult Run() {
    std::apply([&](auto... each) { (Look(each), ...); }, arguments_);
    if (Fails()) return failure;
    std::apply([&](auto... each) { (Give(each), ...); }, arguments_);
    return CUDA_SUCCESS;
  }

 private:
  // Lists that are filled say how many there are.
  static constexpr bool kFillsList = (std::is_same_v<Arguments, size_t*> || ...);

  template <class T>
  T Find() const {
    T found{};
    auto take = [&](auto each) {
      if constexpr (std::is_same_v<decltype(each), T>) found = each;
    };
    std::apply([&](auto... each) { (take(each), ...); }, arguments_);
    return found;
  }

  template <class T>
  void Look(T value) {
    if constexpr (kIsHandle<T>) {
      Expect(value, function_);
    } else if constexpr (std::is_pointer_v<T>) {
      using Element = std::remove_pointer_t<T>;
      if constexpr (std::is_const_v<Element> && kIsHandle<std::remove_const_t<Element>>) {
        size_t count = value == nullptr ? 0 : Find<size_t>();
        for (size_t i = 0; i < count; ++i) Expect(value[i], function_);
      }
    }
  }

  template <class T>
  void Give(T value) {
    if constexpr (std::is_pointer_v<T> && !kIsHandle<T>) {
      if (value != nullptr) Set(value);
    }
  }

  template <class T>
  void Set(T* place) {
    if constexpr (std::is_const_v<T> || std::is_void_v<T> || std::is_function_v<T>) {
    } else if constexpr (kIsHandle<T>) {
      if (!kFillsList) *place = New<T>(Find<CUgraph>());
    } else if constexpr (std::is_same_v<T, const char*>) {
      *place = "kernel";
    } else if constexpr (std::is_pointer_v<T>) {
    } else if constexpr (std::is_same_v<T, unsigned long long>) {
      *place = Handles::All().Make(&kType<T>);
    } else if constexpr (Complete<T>) {
      *place = T{};
    }
  }

  const char* const function_;
  const std::tuple<Arguments...> arguments_;
};

// `name` is a function without state that says the symbol.
template <class Name, class... Arguments>
void Fill(CUresult (*&entry)(Arguments...), Name) {
  entry = [](Arguments... arguments) { return Call<Arguments...>(Name{}(), arguments...).Run(); };
}

template <class Table>
void FillAll(Table& table) {
#define LW_IGNORE(type, name)
#define LW_FILL(symbol, reason, arguments)           \
  if constexpr (requires { table.symbol; }) {        \
    Fill(table.symbol, [] { return #symbol; });      \
  }                                                  \
  if constexpr (requires { table.symbol##_v1; }) {   \
    Fill(table.symbol##_v1, [] { return #symbol; }); \
  }
  LONGWIRE_EVERY_CALL(LW_FILL, LW_IGNORE)
#undef LW_FILL
#undef LW_IGNORE
}

#define LW_ENDS(name)                    \
  table.name = [](auto handle) {         \
    Expect(handle, #name);               \
    if (Fails()) return failure.load();  \
    Handles::All().End((Address)handle); \
    return CUDA_SUCCESS;                 \
  }

void FillEnds(DriverTable& table) {
  LW_ENDS(cuArrayDestroy);
  LW_ENDS(cuMipmappedArrayDestroy);
  LW_ENDS(cuGraphDestroy);
  LW_ENDS(cuGraphExecDestroy);
  LW_ENDS(cuGraphDestroyNode);
  LW_ENDS(cuModuleUnload);
  LW_ENDS(cuLibraryUnload);
  LW_ENDS(cuLinkDestroy);
  LW_ENDS(cuEventDestroy_v2);
  LW_ENDS(cuGreenCtxDestroy);
  LW_ENDS(cuCtxDestroy_v2);
}

void FillModules(DriverTable& table) {
  table.cuModuleGetFunctionCount = [](unsigned* count, CUmodule module) {
    Expect(module, "cuModuleGetFunctionCount");
    *count = 1;
    return CUDA_SUCCESS;
  };
  table.cuFuncGetParamInfo = [](CUfunction function, size_t index, size_t* offset, size_t* size) {
    Expect(function, "cuFuncGetParamInfo");
    if (index >= 2) return CUDA_ERROR_INVALID_VALUE;
    *offset = index * 8;
    *size = 8;
    return CUDA_SUCCESS;
  };
  table.cuKernelGetParamInfo = [](CUkernel, size_t, size_t*, size_t*) {
    return CUDA_ERROR_INVALID_VALUE;
  };
  table.cuPointerGetAttribute = [](void*, CUpointer_attribute, CUdeviceptr) {
    return CUDA_ERROR_INVALID_VALUE;
  };
  table.cuMemPoolGetAttribute = [](CUmemoryPool, CUmemPool_attribute, void* value) {
    *static_cast<cuuint64_t*>(value) = 0;
    return CUDA_SUCCESS;
  };
  table.cuDeviceGetGraphMemAttribute = [](CUdevice, CUgraphMem_attribute, void* value) {
    *static_cast<cuuint64_t*>(value) = 0;
    return CUDA_SUCCESS;
  };
  table.cuLaunchKernel = [](CUfunction function, unsigned, unsigned, unsigned, unsigned, unsigned,
                            unsigned, unsigned, CUstream, void**, void** extra) {
    Expect(function, "cuLaunchKernel");
    if (extra == nullptr) return CUDA_SUCCESS;
    auto* parameters = static_cast<const volatile char*>(extra[1]);
    for (size_t i = 0; i < *static_cast<size_t*>(extra[3]); ++i) (void)parameters[i];
    return Fails() ? failure.load() : CUDA_SUCCESS;
  };
  // Nobody's destructor is called: the object counts as kept.
  table.cuUserObjectCreate = [](CUuserObject* object, void* data, CUhostFn, unsigned, unsigned) {
    if (Fails()) return failure.load();
    __lsan_ignore_object(data);
    *object = New<CUuserObject>(nullptr);
    return CUDA_SUCCESS;
  };
  table.cuLinkComplete = [](CUlinkState state, void** image, size_t* bytes) {
    Expect(state, "cuLinkComplete");
    static char linked[] = "linked";
    *image = linked;
    *bytes = sizeof(linked);
    return CUDA_SUCCESS;
  };
}

void FillMemory(DriverTable& table) {
  table.cuMemHostAlloc = [](void** memory, size_t bytes, unsigned) {
    *memory = Pinned::All().Allocate(bytes);
    return CUDA_SUCCESS;
  };
  table.cuMemFreeHost = [](void* memory) {
    Pinned::All().Free(memory);
    return CUDA_SUCCESS;
  };
  table.cuMemHostGetDevicePointer_v2 = [](CUdeviceptr* address, void* memory, unsigned) {
    *address = reinterpret_cast<CUdeviceptr>(memory);
    return CUDA_SUCCESS;
  };
  table.cuMemHostRegister_v2 = [](void* memory, size_t bytes, unsigned) {
    Pinned::All().Add(memory, bytes);
    return CUDA_SUCCESS;
  };
  table.cuMemHostUnregister = [](void* memory) {
    Pinned::All().Remove(memory);
    return CUDA_SUCCESS;
  };
  table.cuMemcpyHtoDAsync_v2 = [](CUdeviceptr, const void* from, size_t bytes, CUstream) {
    Pinned::All().Use(from, bytes, false, "cuMemcpyHtoDAsync");
    return Fails() ? failure.load() : CUDA_SUCCESS;
  };
  table.cuMemcpyDtoHAsync_v2 = [](void* to, CUdeviceptr, size_t bytes, CUstream) {
    Pinned::All().Use(to, bytes, true, "cuMemcpyDtoHAsync");
    return Fails() ? failure.load() : CUDA_SUCCESS;
  };
}

// Streams progress by themselves, and say so in memory of the worker's.
void FillStreams(DriverTable& table, const DriverTable& fake) {
  table.cuStreamCreateWithPriority = fake.cuStreamCreateWithPriority;
  table.cuStreamCreate = [](CUstream* stream, unsigned) {
    *stream = FakeDriver::Get().NewStream();
    return CUDA_SUCCESS;
  };
  table.cuStreamDestroy_v2 = [](CUstream stream) {
    FakeDriver::Get().StateOf(stream);
    return CUDA_SUCCESS;
  };
  table.cuStreamQuery = fake.cuStreamQuery;
  table.cuStreamSynchronize = fake.cuStreamSynchronize;
  table.cuLaunchHostFunc = [](CUstream stream, CUhostFn function, void* data) {
    return FakeDriver::Get().Issue(stream, "", [=] {
      function(data);
      return true;
    });
  };
  static const auto write = fake.cuStreamWriteValue64_v2;
  table.cuStreamWriteValue64_v2 = [](CUstream stream, CUdeviceptr address, cuuint64_t value,
                                     unsigned flags) {
    bool ours = address % sizeof(value) == 0 && Pinned::All().Has(address, sizeof(value));
    return ours ? write(stream, address, value, flags) : CUDA_SUCCESS;
  };
}

}  // namespace

DriverTable StrictDriver() {
  DriverTable table;
  FillAll(table);
  FillEnds(table);
  FillModules(table);
  FillMemory(table);
  FillStreams(table, FakeDriver::Get().table());
  return table;
}

void FailCalls(unsigned every, CUresult code) {
  failure = code;
  calls = 0;
  interval = every;
}

void ForgetHandles() {
  FailCalls(0, CUDA_SUCCESS);
  Handles::All().Clear();
  Pinned::All().Clear();
}

}  // namespace longwire::fuzz
