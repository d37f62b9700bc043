#include "client-shim/code/module.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "base/try.h"
#include "client-shim/code/image.h"
#include "client-shim/code/image_upload.h"
#include "client-shim/code/probe_clock.h"
#include "client-shim/code/probed_modules.h"
#include "client-shim/code/probes.h"
#include "client-shim/code/references.h"
#include "client-shim/context/properties.h"
#include "client-shim/memory/placed_memory.h"
#include "client-shim/mirror/managed_memory.h"
#include "client-shim/session/session.h"
#include "client-shim/support/holding.h"
#include "client-shim/support/never_destroyed.h"
#include "wire/descriptors.h"
#include "wire/switches.h"

namespace longwire::shim {
namespace {

using ModuleTable = HandleTable<Module, HandleKind::kModule>;
using FunctionTable = HandleTable<Function, HandleKind::kFunction>;

ModuleTable& Modules() {
  static NeverDestroyed<ModuleTable> table;
  return *table;
}

FunctionTable& Functions() {
  static NeverDestroyed<FunctionTable> table;
  return *table;
}

// Where the worker's driver put globals: every address of theirs is device memory.
struct KnownGlobal {
  uint64_t bytes = 0;
  Context* context = nullptr;
  uint64_t module = 0;
};
struct KnownGlobals {
  base::Mutex mutex{base::ranks::kGlobals};
  // Of each server: their drivers may put different ones at the same address.
  std::array<std::map<uint64_t, KnownGlobal>, wire::kMaxServers> by_address
      LONGWIRE_GUARDED_BY(mutex);
};

KnownGlobals& Globals() {
  static NeverDestroyed<KnownGlobals> globals;
  return *globals;
}

// The handles of functions by the worker's numbers.
struct Numbers {
  base::Mutex mutex{base::ranks::kFunctionNumbers};
  std::map<std::pair<const ClientSession*, uint64_t>, CUfunction> handles
      LONGWIRE_GUARDED_BY(mutex);
};

Numbers& FunctionNumbers() {
  static NeverDestroyed<Numbers> numbers;
  return *numbers;
}

// False if there is a parameter where none can be.
bool LaidOut(const calls::Function& described, Function* function) {
  size_t count = std::min(described.offset.size(), described.size.size());
  for (size_t i = 0; i < count; ++i) {
    Parameter parameter{described.offset[i], described.size[i]};
    uint64_t end = uint64_t{parameter.offset} + parameter.size;
    if (end > kMaxParameterBytes) return false;
    function->parameters.push_back(parameter);
    function->parameter_bytes =
        std::max(function->parameter_bytes, parameter.offset + parameter.size);
  }
  return true;
}

// The attributes that came with the load.
void KeepAttributes(const ClientSession& session, const Module& module,
                    const calls::Function& described, Function* function) {
  base::MutexLock lock(function->mutex);
  for (const calls::FunctionAttributes& known : described.attributes) {
    int device = module.is_library ? DeviceByServerOrdinal(session, known.device) : -1;
    if (device >= 0 || !module.is_library) function->attributes[device] = known;
  }
}

// Whether a function is what another server has loaded under its name. An image may hold code for
// several kinds of devices.
bool IsAlike(const Function& function, const calls::Function& described) {
  const auto same = [&](size_t i) {
    const Parameter& known = function.parameters[i];
    return known.offset == described.offset[i] && known.size == described.size[i];
  };
  const size_t count = std::min(described.offset.size(), described.size.size());
  bool alike = count == function.parameters.size();
  for (size_t i = 0; alike && i < count; ++i) alike = same(i);
  return alike;
}

void NoteNumber(ClientSession& session, uint64_t number, Function* function) {
  function->numbers[session.server()] = number;
  Numbers& numbers = FunctionNumbers();
  base::MutexLock lock(numbers.mutex);
  numbers.handles[{&session, number}] = function->handle;
}

CUresult AddFunction(ClientSession& session, Module* module, const calls::Function& described) {
  auto known = module->functions.find(std::string(described.name));
  if (known != module->functions.end() && &session != module->session) {
    if (!IsAlike(*known->second, described)) return CUDA_ERROR_NO_BINARY_FOR_GPU;
    KeepAttributes(session, *module, described, known->second);
    NoteNumber(session, described.function, known->second);
    return CUDA_SUCCESS;
  }
  Function* function = Functions().New();
  if (function == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  if (!LaidOut(described, function)) {
    Functions().Recycle(function);
    return CUDA_ERROR_UNKNOWN;  // the server describes what no kernel has
  }
  function->name = std::string(described.name);
  KeepAttributes(session, *module, described, function);
  function->module = module;
  function->handle = reinterpret_cast<CUfunction>(Functions().Publish(function));
  module->functions[function->name] = function;
  module->in_order.push_back(function);
  NoteNumber(session, described.function, function);
  return CUDA_SUCCESS;
}

CUresult AddFunctions(ClientSession& session, Module* module,
                      std::span<const calls::Function> described) {
  CUresult result = CUDA_SUCCESS;
  for (size_t i = 0; result == CUDA_SUCCESS && i < described.size(); ++i) {
    result = AddFunction(session, module, described[i]);
  }
  return result;
}

// A large module's functions come in several replies.
CUresult AddFurtherFunctions(const Where& where, Module* module, uint64_t known,
                             uint64_t functions) {
  if (functions > wire::kMaxFunctions) {
    return where.session->Distrust("describes a module with more functions than there can be");
  }
  while (known < functions) {
    calls::lwModuleFunctions ask;
    ask.library = module->id;
    ask.first = known;
    auto answer = where.session->CallAndWait(where, ask);
    if (answer.code != CUDA_SUCCESS) return answer.code;
    if (answer.reply.function.empty()) return CUDA_ERROR_UNKNOWN;
    known += answer.reply.function.size();
    LONGWIRE_TRY(AddFunctions(*where.session, module, answer.reply.function));
  }
  return CUDA_SUCCESS;
}

// The device whose attributes of the functions shall come with the load, as the worker counts: the
// one where they will be launched, as far as that is known. -1: none.
int AttributesDevice(const ClientSession& session, const Module& module) {
  if (wire::IsSwitchedOff("attributes-with-load")) return -1;
  Context* context = module.context;
  if (context == nullptr && RequireContext(&context) != CUDA_SUCCESS) context = nullptr;
  const Device* device = FindDevice(context == nullptr ? 0 : context->device);
  return device == nullptr || device->session != &session ? -1 : device->server_ordinal;
}

void SubmitUnload(const Where& where, uint64_t id) {
  calls::lwModuleUnload unload;
  unload.library = id;
  where.session->AwaitAnswers();  // kernels of it may be on their way into graphs
  where.session->Submit(where, unload);
}

// Options as they were given: an answer overwrites some of their values.
struct GivenOptions {
  explicit GivenOptions(const JitOptions& options)
      : outputs(options), result(TravellingOptions(options, &option, &value)) {}
  JitOutputs outputs;
  std::vector<uint32_t> option;
  std::vector<uint64_t> value;
  CUresult result;  // whether they can be served
};

enum class Holds { kImage, kParts };

// What a server has loaded of an image.
struct Fitting {
  Holds holds = Holds::kImage;
  std::vector<std::byte> parts;  // one after the other
};

CUresult SendAndLoad(const Where& where, Module* module, std::span<const std::byte> image,
                     Holds holds, const GivenOptions& options) {
  ClientSession& session = *where.session;
  calls::lwModuleLoad load;
  load.library = module->id;
  load.as_library = module->is_library;
  load.parts = holds == Holds::kParts;
  load.attributes_device = AttributesDevice(session, *module);
  load.option = options.option;
  load.option_value = options.value;
  ImageUpload upload(session, image, session.counts().images);
  if (!upload.Begin(&load)) return ClientSession::NotSent();
  auto answer = session.CallAndWait(where, load);
  if (answer.code != CUDA_SUCCESS && !answer.bytes.empty()) {
    wire::Reader reader(answer.bytes);
    if (answer.reply.Decode(reader) != wire::WireResult::kOk) answer.reply = {};
  }
  upload.Answered(answer.reply.knowledge);
  options.outputs.Deliver(answer.reply);
  if (answer.code != CUDA_SUCCESS) return answer.code;
  LONGWIRE_TRY(AddFunctions(*where.session, module, answer.reply.function));
  return AddFurtherFunctions(where, module, answer.reply.function.size(), answer.reply.functions);
}

// The container, or else the parts, which the server links: one after the other in one image.
CUresult SendWhatFits(const Where& where, Module* module, const Image& image,
                      const GivenOptions& options, Fitting* fitting) {
  CUresult result = CUDA_ERROR_NO_BINARY_FOR_GPU;
  uint64_t nothing_in_it = 0;  // the container's number, if it loaded but has no function
  if (!image.bytes.empty()) {
    module->id = where.session->NewId();
    result = SendAndLoad(where, module, image.bytes, Holds::kImage, options);
    bool loaded = result == CUDA_SUCCESS;
    if (loaded ? !module->in_order.empty() : result != CUDA_ERROR_NO_BINARY_FOR_GPU) return result;
    if (image.parts.empty()) return result;
    if (loaded) nothing_in_it = module->id;
  }
  std::vector<std::byte>& parts = fitting->parts;
  for (std::span<const std::byte> part : image.parts) {
    if (parts.size() + part.size() > wire::kMaxImageBytes) return CUDA_ERROR_INVALID_IMAGE;
    parts.insert(parts.end(), part.begin(), part.end());
  }
  module->id = where.session->NewId();
  result = SendAndLoad(where, module, parts, Holds::kParts, options);
  fitting->holds = Holds::kParts;
  if (nothing_in_it == 0) return result;
  if (result == CUDA_SUCCESS) {
    SubmitUnload(where, nothing_in_it);
  } else {
    fitting->holds = Holds::kImage;
    module->id = nothing_in_it;  // what holds data only is good without its parts
  }
  return CUDA_SUCCESS;
}

// Unloads it from the first `servers` ones, a context's module from its own.
void UnloadFrom(const Module& module, size_t servers) {
  if (!module.is_library) {
    return SubmitUnload({module.context_number, nullptr, 0, module.session}, module.id);
  }
  for (size_t i = 0; i < servers; ++i) {
    SubmitUnload({0, nullptr, 0, Sessions()[i]}, module.id);
  }
}

// Forgets the functions, which nobody uses.
void DropFunctions(const Module& module) {
  {
    Numbers& numbers = FunctionNumbers();
    base::MutexLock lock(numbers.mutex);
    for (const Function* function : module.in_order) {
      for (const ClientSession* session : Sessions()) {
        numbers.handles.erase({session, function->NumberAt(*session)});
      }
    }
  }
  for (Function* function : module.in_order) {
    if (Functions().Retire(function)) Functions().Recycle(function);
  }
}

// A library is loaded by all servers at once, as any context may launch its functions.
CUresult LoadAtOthers(Module* module, const Image& image, const GivenOptions& options,
                      const Fitting& fitting) {
  for (size_t i = 1; i < Sessions().size(); ++i) {
    const Where where = {0, nullptr, 0, Sessions()[i]};
    const bool whole = fitting.holds == Holds::kImage;
    CUresult result = SendAndLoad(where, module, whole ? image.bytes : std::span(fitting.parts),
                                  fitting.holds, options);
    if (result == CUDA_SUCCESS) continue;
    UnloadFrom(*module, i);
    DropFunctions(*module);
    return result;
  }
  return CUDA_SUCCESS;
}

CUresult LoadInto(Module* module, const Where& where, const Image& image,
                  const GivenOptions& given) {
  Fitting fitting;
  LONGWIRE_TRY(SendWhatFits(where, module, image, given, &fitting));
  return module->is_library ? LoadAtOthers(module, image, given, fitting) : CUDA_SUCCESS;
}

CUresult Load(const Where& where, const void* image, const JitOptions& options, bool as_library,
              Context* context, Module** loaded) {
  if (image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!options.valid()) return CUDA_ERROR_INVALID_VALUE;
  const GivenOptions given(options);
  if (given.result != CUDA_SUCCESS) return given.result;
  const Image program = MeasureImage(image);
  if (program.empty()) return CUDA_ERROR_INVALID_IMAGE;
  ProbedImage probed(program, context);
  Module* module = Modules().New();
  if (module == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  module->is_library = as_library;
  module->session = where.session;
  module->context = context;
  module->context_number = where.context;
  CUresult result = LoadInto(module, where, probed.image(), given);
  if (result != CUDA_SUCCESS && probed.has_probes() && where.session->ended() == CUDA_SUCCESS) {
    probed.Reject(result);
    result = LoadInto(module, where, probed.image(), given);
  }
  if (result != CUDA_SUCCESS) {
    Modules().Recycle(module);
    return result;
  }
  module->handle = reinterpret_cast<CUmodule>(Modules().Publish(module));
  if (probed.has_probes()) {
    NoteProbed(module);
    CompareProbeClock(context);
  }
  *loaded = module;
  return CUDA_SUCCESS;
}

// The program takes managed variables for its own memory, and all others for the device's.
CUresult CheckGlobal(ClientSession& session, GlobalKind kind,
                     const calls::lwModuleGlobal::Reply& global) {
  bool good =
      global.managed || (kind != GlobalKind::kManaged && NotePlaced(global.address, global.bytes));
  return good ? CUDA_SUCCESS : session.Distrust("put a variable into the program's memory");
}

// The addresses of a module's globals, which are nobody's from now on.
std::vector<uint64_t> ForgetGlobals(uint64_t module) {
  std::vector<uint64_t> gone;
  KnownGlobals& globals = Globals();
  base::MutexLock lock(globals.mutex);
  for (auto& of_server : globals.by_address) {
    std::erase_if(of_server, [&](const auto& entry) {
      if (entry.second.module != module) return false;
      gone.push_back(entry.first);
      return true;
    });
  }
  return gone;
}

}  // namespace

Function* FunctionByNumber(ClientSession& session, uint64_t number) {
  Numbers& numbers = FunctionNumbers();
  base::MutexLock lock(numbers.mutex);
  auto found = numbers.handles.find({&session, number});
  return found == numbers.handles.end() ? nullptr : FindFunction(found->second);
}

CUresult LoadModule(const void* image, const JitOptions& options, CUmodule* handle) {
  Context* context = nullptr;
  LONGWIRE_TRY(RequireHealthyContext(&context));
  Module* module = nullptr;
  CUresult result = Load(WhereOf(context), image, options, false, context, &module);
  if (result == CUDA_SUCCESS) *handle = module->handle;
  return result;
}

CUresult LoadLibrary(const void* image, const JitOptions& options, CUlibrary* library) {
  Module* module = nullptr;
  CUresult result = Load(WhereOfNumber(0), image, options, true, nullptr, &module);
  if (result == CUDA_SUCCESS) *library = reinterpret_cast<CUlibrary>(module->handle);
  return result;
}

CUresult LoadFile(const char* path, std::vector<char>* image) {
  std::unique_ptr<FILE, int (*)(FILE*)> file(wire::OpenStream(path, "r"), fclose);
  if (file == nullptr) return CUDA_ERROR_FILE_NOT_FOUND;
  constexpr size_t kPiece = 65536;
  size_t got = kPiece;
  while (got == kPiece) {  // less is the end
    size_t before = image->size();
    image->resize(before + kPiece);
    got = fread(image->data() + before, 1, kPiece, file.get());
    image->resize(before + got);
    if (image->size() > wire::kMaxImageBytes) return CUDA_ERROR_INVALID_IMAGE;
  }
  image->push_back(0);  // text needs its end
  return image->size() > 8 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
}

CUresult UnloadModule(Module* module) {
  if (!Modules().Retire(module)) return CUDA_ERROR_INVALID_HANDLE;
  std::vector<uint64_t> gone = ForgetGlobals(module->id);
  for (uint64_t global : gone) {
    RemoveManagedVariable(global);
    ForgetPlaced(global);
  }
  UnloadFrom(*module, Sessions().size());
  ForgetReferences(module);
  DropFunctions(*module);
  Modules().Recycle(module);
  return CUDA_SUCCESS;
}

Module* FindModule(CUmodule handle) { return Modules().Find(reinterpret_cast<uint64_t>(handle)); }

Module* FindLibrary(CUlibrary handle) {
  Module* module = Modules().Find(reinterpret_cast<uint64_t>(handle));
  return module != nullptr && module->is_library ? module : nullptr;
}

Function* FindFunction(CUfunction handle) {
  return Functions().Find(reinterpret_cast<uint64_t>(handle));
}

CUresult GlobalOf(Module* module, const char* name, GlobalKind kind, uint64_t* address,
                  size_t* bytes) {
  Context* context = nullptr;
  if (kind == GlobalKind::kManaged) LONGWIRE_TRY(RefuseIfSeveral("a managed variable"));
  CUresult result = RequireHealthyContext(&context);
  if (result == CUDA_ERROR_INVALID_CONTEXT && kind == GlobalKind::kManaged) {
    // Asked for before there is a context: the variable lies on the first device.
    context = PrimaryContext(0);
    result = ActivatePrimary(context);
  }
  if (result != CUDA_SUCCESS) return result;
  uint32_t number = module->is_library ? context->number.load() : module->context_number;
  bool managed = kind == GlobalKind::kManaged;
  std::string key = std::to_string(number) + (managed ? "m:" : ":") + name;
  base::MutexLock lock(module->mutex);
  auto known = module->globals.find(key);
  if (known == module->globals.end()) {
    lock.Unlock();
    calls::lwModuleGlobal ask;
    ask.library = module->id;
    ask.name = name;
    ask.managed = managed;
    ClientSession& session = module->is_library ? *context->session : *module->session;
    auto answer = session.CallAndWait({number, nullptr, 0}, ask);
    if (answer.code != CUDA_SUCCESS) return answer.code;
    LONGWIRE_TRY(CheckGlobal(session, kind, answer.reply));
    if (answer.reply.managed) {
      LONGWIRE_TRY(RefuseIfSeveral("a managed variable"));
      result =
          AddManagedVariable(context, answer.reply.address, answer.reply.bytes, module->is_library);
      if (result != CUDA_SUCCESS) return result;
    }
    {
      KnownGlobals& globals = Globals();
      base::MutexLock known_lock(globals.mutex);
      globals.by_address[session.server()][answer.reply.address] = {answer.reply.bytes, context,
                                                                    module->id};
    }
    lock.Lock();
    known = module->globals.insert({key, {answer.reply.address, answer.reply.bytes}}).first;
  }
  *address = known->second.address;
  *bytes = known->second.bytes;
  return CUDA_SUCCESS;
}

bool FindGlobal(uint64_t address, uint64_t* start, uint64_t* bytes, Context** context) {
  // The current context's server first.
  const Context* current = AreSeveral() ? FindContext(nullptr) : nullptr;
  const size_t own = current == nullptr ? 0 : current->session->server();
  KnownGlobals& globals = Globals();
  base::MutexLock lock(globals.mutex);
  for (size_t i = 0; i < Sessions().size(); ++i) {
    auto& of_server = globals.by_address[(own + i) % Sessions().size()];
    auto found = Holding(of_server, address);
    if (found == of_server.end()) continue;
    *start = found->first;
    *bytes = found->second.bytes;
    *context = found->second.context;
    return true;
  }
  return false;
}

}  // namespace longwire::shim
