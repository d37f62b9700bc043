// One class per generated file. Each gets the checked model and returns the file's text.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "codegen/model.h"

namespace longwire::codegen {

// How many files the larger outputs are spread over, so that each compiles quickly. CMakeLists.txt
// names the same numbers.
inline constexpr size_t kStructParts = 3;
inline constexpr size_t kEntryParts = 3;
inline constexpr size_t kForwardParts = 2;
inline constexpr size_t kDispatchParts = 3;

struct File {
  std::string path;  // below the generator's output folder
  std::string text;
};

class Emitter {
 public:
  virtual ~Emitter() = default;
  virtual std::vector<File> Emit(const Api& api) const = 0;
};

// call_ids.h and call_ids.cc: numbers, names and facts of the calls.
std::unique_ptr<Emitter> MakeCallIdsEmitter();
// calls.h, calls_N.cc: structs with encode and decode.
std::unique_ptr<Emitter> MakeStructsEmitter();
// for_each_call.h: visitors over all structs and their fields.
std::unique_ptr<Emitter> MakeVisitorEmitter();
// printer.cc: one readable line for an encoded call.
std::unique_ptr<Emitter> MakePrinterEmitter();
// shim_entries_N.cc: the exported functions.
std::unique_ptr<Emitter> MakeEntriesEmitter();
// shim_hand_written.h, worker_hand_written.h: what hand-written code must define.
std::unique_ptr<Emitter> MakeHandWrittenEmitter();
// shim_forward_N.cc: shim::forward::X, the generated client's side.
std::unique_ptr<Emitter> MakeForwardEmitter();
// proc_table.h, proc_table.cc: name, version and stream mode to function.
std::unique_ptr<Emitter> MakeProcTableEmitter();
// driver_table.h, driver_table.cc: the functions of a real driver.
std::unique_ptr<Emitter> MakeDriverTableEmitter();
// dispatch.h, dispatch.cc, dispatch_N.cc: the worker's side.
std::unique_ptr<Emitter> MakeDispatchEmitter();
// fake_driver.h, fake_driver.cc: a driver table that records, for tests.
std::unique_ptr<Emitter> MakeFakeDriverEmitter();
// every_call.h: a list of the exported functions with arguments by type and name, for tests.
std::unique_ptr<Emitter> MakeEveryCallEmitter();
// support.md: what is supported and why the rest is not.
std::unique_ptr<Emitter> MakeSupportEmitter();

std::vector<std::unique_ptr<Emitter>> MakeEmitters();

}  // namespace longwire::codegen
