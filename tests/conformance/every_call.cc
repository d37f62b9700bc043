// every_call MODE: calls every function once, each by itself, and prints what it answered:
// `NAME(MODE) = CODE`. Those that CONFORMANCE_LEAVE_OUT names as `NAME(MODE)` are left out.
//
//   before_init      with room for what comes back, before cuInit
//   without_context  the same after it, while no context is current
//   nothing          with a context, and with nothing: null and zero for every argument
//   numbers          with a context and room, and 99 for every number that is no address
//   strangers        with a context and room, and handles of nothing: no driver's own mode
#include <cuda.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <string>
#include <string_view>
#include <type_traits>

// The names that a program sees; some of them are not to be used any more.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace {

enum class Arguments { kRoom, kNothing, kNumbers, kStrangers };

// Handles are pointers to what nobody sees.
template <class T>
concept Complete = requires {
  sizeof(T);
};

// Of each argument: more than 99 of any structure take.
alignas(64) char room[16][32768];
size_t next_room = 0;

template <class T>
T Make(Arguments arguments) {
  if constexpr (std::is_pointer_v<T>) {
    using Object = std::remove_cv_t<std::remove_pointer_t<T>>;
    if constexpr (std::is_same_v<T, const char*>) {
      return arguments != Arguments::kNothing ? "/no/such/name" : nullptr;
    } else if constexpr (std::is_function_v<Object>) {
      return nullptr;
    } else if constexpr (std::is_void_v<Object> || Complete<Object>) {
      if (arguments == Arguments::kNothing) return nullptr;
      return reinterpret_cast<T>(room[next_room++ % 16]);
    } else {
      return arguments == Arguments::kStrangers ? reinterpret_cast<T>(0x7654321) : nullptr;
    }
  } else if constexpr (std::is_enum_v<T> ||
                       (std::is_arithmetic_v<T> && !std::is_same_v<T, CUdeviceptr>)) {
    return static_cast<T>(arguments == Arguments::kNumbers ? 99 : 0);
  } else {
    return T{};
  }
}

template <class... A>
CUresult CallIt(CUresult (*function)(A...), [[maybe_unused]] Arguments arguments) {
  next_room = 0;
  std::memset(room, 0, sizeof room);
  return function(Make<A>(arguments)...);
}

struct Call {
  const char* name;
  const char* symbol;
  CUresult (*make)(void* function, Arguments arguments);
};

#define TEXT_OF(x) #x
#define SYMBOL_OF(x) TEXT_OF(x)
#define CALL(name)                                                          \
  {#name, SYMBOL_OF(name), [](void* function, Arguments arguments) {        \
     return CallIt(reinterpret_cast<decltype(&name)>(function), arguments); \
   }},

const Call kCalls[] = {
#include "every_call.inc"
};

// What changes what later calls meet.
bool IsNotAsked(const char* name) {
  for (const char* other : {"cuInit", "cuCtxSetCurrent"}) {
    if (std::strcmp(name, other) == 0) return true;
  }
  return false;
}

bool IsLeftOut(const std::string& check) {
  const char* checks = std::getenv("CONFORMANCE_LEAVE_OUT");
  return checks != nullptr &&
         (" " + std::string(checks) + " ").find(" " + check + " ") != std::string::npos;
}

void Print(const std::string& check, CUresult result) {
  const char* text = nullptr;
  if (cuGetErrorName(result, &text) != CUDA_SUCCESS) text = "?";
  std::printf("%s = %s\n", check.c_str(), text);
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) return 2;
  const char* mode = arguments[1];
  const std::string_view modes[] = {"without_context", "nothing", "numbers", "strangers"};
  const auto found = std::find(std::begin(modes), std::end(modes), std::string_view(mode));
  const bool early = found == std::end(modes);
  const auto given = early ? Arguments::kRoom : static_cast<Arguments>(found - std::begin(modes));
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  CUcontext context = nullptr;
  if (!early && cuInit(0) != CUDA_SUCCESS) return 3;
  const bool with_context = given != Arguments::kRoom;
  if (with_context && cuCtxCreate(&context, nullptr, 0, 0) != CUDA_SUCCESS) return 3;
  for (const Call& call : kCalls) {
    void* function = dlsym(RTLD_DEFAULT, call.symbol);
    const std::string check = std::string(call.name) + "(" + mode + ")";
    if (IsNotAsked(call.name)) continue;
    if (function == nullptr || IsLeftOut(check)) {
      std::printf("%s = (left out)\n", check.c_str());
      continue;
    }
    Print(check, call.make(function, given));
    // What a call made current is none of the next one's.
    if (!early) cuCtxSetCurrent(context);
  }
  return 0;
}
