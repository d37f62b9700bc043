// Loaded code: modules (of a context), libraries (of all contexts) and their functions. The reply
// of a load has the functions' names and parameter layouts, and for a small module also their
// attributes. Other attributes are requested once per function, and cached.
#pragma once

#include <cuda.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "client-shim/code/jit_options.h"
#include "client-shim/context/context.h"
#include "client-shim/session/session.h"
#include "client-shim/support/handle_table.h"
#include "longwire/calls.h"
#include "wire/limits.h"

namespace longwire::shim {

struct Module;
struct Reference;

inline constexpr size_t kMaxParameterBytes = 32764;  // of one kernel, from CUDA 12.1 on

struct Parameter {
  uint32_t offset = 0;  // in the parameter buffer, bytes
  uint32_t size = 0;
};

// Settings for a function's next launches by the API of CUDA 3 and older.
struct NextLaunch {
  uint32_t block_x = 0, block_y = 0, block_z = 0;  // 0: not set, launches are refused
  uint32_t shared_bytes = 0;
  uint32_t parameter_bytes = 0;
  std::vector<std::byte> parameters;
};

struct Function {
  uint64_t table_index = 0;
  // The workers', by server; 0: not loaded there.
  std::array<uint64_t, wire::kMaxServers> numbers{};
  uint64_t NumberAt(const ClientSession& session) const { return numbers[session.server()]; }
  std::string name;
  std::vector<Parameter> parameters;
  uint32_t parameter_bytes = 0;
  Module* module = nullptr;
  CUfunction handle = nullptr;
  base::Mutex mutex{base::ranks::kFunction};
  // The worker's driver's attributes, by device (-1: a module's function, in its context).
  std::unordered_map<int, calls::FunctionAttributes> attributes LONGWIRE_GUARDED_BY(mutex);
  NextLaunch next_launch LONGWIRE_GUARDED_BY(mutex);
  // True if launches must check its cluster dimensions: it was compiled for clusters, or the
  // program has set some.
  enum class Clusters : uint8_t { kUnknown, kNone, kSet };
  std::atomic<Clusters> clusters{Clusters::kUnknown};
};

struct Module {
  uint64_t table_index = 0;
  uint64_t id = 0;  // on the wire
  bool is_library = false;
  ClientSession* session = nullptr;  // of the server that has loaded it; a library: the first one
  CUmodule handle = nullptr;         // of a library: created at the first request, then unchanged
  Context* context = nullptr;        // of a module
  uint32_t context_number = 0;       // of a module
  std::unordered_map<std::string, Function*> functions;
  std::vector<Function*> in_order;
  std::atomic<bool> has_references{false};
  struct Global {
    uint64_t address = 0, bytes = 0;
  };
  base::Mutex mutex{base::ranks::kModule};
  // Textures and surfaces that the program has looked up.
  std::vector<Reference*> references LONGWIRE_GUARDED_BY(mutex);
  // By context number and name.
  std::unordered_map<std::string, Global> globals LONGWIRE_GUARDED_BY(mutex);
};

CUresult LoadModule(const void* image, const JitOptions& options, CUmodule* module);
CUresult LoadLibrary(const void* image, const JitOptions& options, CUlibrary* library);
// The file's bytes and a terminating zero, which text needs.
CUresult LoadFile(const char* path, std::vector<char>* image);
CUresult UnloadModule(Module* module);

Module* FindModule(CUmodule module);  // also a library's module
Module* FindLibrary(CUlibrary library);
Function* FindFunction(CUfunction function);  // also a CUkernel cast to CUfunction
Function* FunctionByNumber(ClientSession& session,
                           uint64_t number);  // the worker's; nullptr if it was unloaded

enum class GlobalKind { kAny, kManaged };
CUresult GlobalOf(Module* module, const char* name, GlobalKind kind, uint64_t* address,
                  size_t* bytes);
// The global variable, placed by the worker's driver, that contains the address.
bool FindGlobal(uint64_t address, uint64_t* start, uint64_t* bytes, Context** context);

CUresult FunctionAttribute(Function* function, int attribute, int device, int* value);
CUresult SetFunctionAttribute(Function* function, int attribute, int value, int device);

}  // namespace longwire::shim
