// Loaded code: modules (of a context) and libraries (of all contexts), their functions with names,
// parameter layouts and attributes. A load's reply brings the names and layouts, and the attributes
// of a small module's functions; of others they are asked for once per function. They are kept.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "client-shim/code/jit_options.h"
#include "client-shim/context/context.h"
#include "client-shim/support/handle_table.h"
#include "longwire/calls.h"

namespace longwire::shim {

struct Module;
struct Reference;

inline constexpr size_t kMaxParameterBytes = 32764;  // of one kernel, from CUDA 12.1 on

struct Parameter {
  uint32_t offset = 0;  // in the parameter buffer, bytes
  uint32_t size = 0;
};

// What the calls from before CUDA 4 have set for a function's next launches.
struct NextLaunch {
  uint32_t block_x = 0, block_y = 0, block_z = 0;  // 0: not set, no launch is taken
  uint32_t shared_bytes = 0;
  uint32_t parameter_bytes = 0;
  std::vector<std::byte> parameters;
};

struct Function {
  uint64_t table_index = 0;
  uint64_t number = 0;  // the worker's
  std::string name;
  std::vector<Parameter> parameters;
  uint32_t parameter_bytes = 0;
  Module* module = nullptr;
  CUfunction handle = nullptr;
  base::Mutex mutex{base::ranks::kFunction};
  // By device (-1: a module's function, in its context), what the worker's driver answered.
  std::unordered_map<int, calls::FunctionAttributes> attributes LONGWIRE_GUARDED_BY(mutex);
  NextLaunch next_launch LONGWIRE_GUARDED_BY(mutex);
  // Whether launches have to look at what clusters it asks for: not if it was not compiled for any,
  // and the program set none.
  enum class Clusters : uint8_t { kUnknown, kNone, kSet };
  std::atomic<Clusters> clusters{Clusters::kUnknown};
};

struct Module {
  uint64_t table_index = 0;
  uint64_t id = 0;  // on the wire
  bool is_library = false;
  CUmodule handle = nullptr;    // of a library: made when asked for, the same value kept
  Context* context = nullptr;   // of a module
  uint32_t context_number = 0;  // of a module
  std::unordered_map<std::string, Function*> functions;
  std::vector<Function*> in_order;
  std::atomic<bool> has_references{false};
  struct Global {
    uint64_t address = 0, bytes = 0;
  };
  base::Mutex mutex{base::ranks::kModule};
  // Textures and surfaces that the program asked for.
  std::vector<Reference*> references LONGWIRE_GUARDED_BY(mutex);
  // By context number and name.
  std::unordered_map<std::string, Global> globals LONGWIRE_GUARDED_BY(mutex);
};

CUresult LoadModule(const void* image, const JitOptions& options, CUmodule* module);
CUresult LoadLibrary(const void* image, const JitOptions& options, CUlibrary* library);
// The file's bytes and a zero behind them, which text needs.
CUresult LoadFile(const char* path, std::vector<char>* image);
CUresult UnloadModule(Module* module);

Module* FindModule(CUmodule module);  // also a library's module
Module* FindLibrary(CUlibrary library);
Function* FindFunction(CUfunction function);  // also a CUkernel cast to CUfunction
Function* FunctionByNumber(uint64_t number);  // the worker's; nullptr if it was unloaded

enum class GlobalKind { kAny, kManaged };
CUresult GlobalOf(Module* module, const char* name, GlobalKind kind, uint64_t* address,
                  size_t* bytes);
// Device memory that the worker's driver placed: the global that holds the address.
bool FindGlobal(uint64_t address, uint64_t* start, uint64_t* bytes, Context** context);

CUresult FunctionAttribute(Function* function, int attribute, int device, int* value);
CUresult SetFunctionAttribute(Function* function, int attribute, int value, int device);

}  // namespace longwire::shim
