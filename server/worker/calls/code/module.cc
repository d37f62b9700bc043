// Modules, libraries and what is in them.

#include <cstring>

#include "base/try.h"
#include "longwire/worker_hand_written.h"
#include "server/worker/calls/call_context.h"
#include "server/worker/calls/code/functions.h"
#include "server/worker/code/images.h"
#include "server/worker/code/linker.h"
#include "server/worker/code/loading.h"
#include "server/worker/code/variables.h"
#include "server/worker/memory/array_bytes.h"
#include "wire/sha256.h"

namespace longwire::worker {

constexpr uint64_t kFunctionBytes = 512;  // of each function's objects here

// A link that fails is reported as a load that fails.
static CUresult LinkParts(CallContext& context, const calls::lwModuleLoad& call,
                          const rules::JitChange& change, std::vector<std::byte>* image,
                          calls::lwModuleLoad::Reply* reply) {
  JitOptions options(call.option, call.option_value);
  options.Apply(change);
  CUresult result = LinkParts(context.driver(), call.bytes, &options, image);
  if (result != CUDA_SUCCESS) TellOutputs(context, options, reply);
  return result;
}

// By which rules call it. A client that keeps no images here names none: then it is computed, if
// there are rules.
static std::string NameOfModule(WorkerSession& session, const calls::lwModuleLoad& call,
                                std::span<const std::byte> image) {
  wire::Digest digest;
  if (call.digest.size() == digest.size()) {
    std::memcpy(digest.data(), call.digest.data(), digest.size());
  } else if (session.rules().any() || session.statistics().on()) {
    digest = wire::Sha256Of(image.first(call.bytes));
  } else {
    return {};
  }
  return wire::Hexadecimal(digest);
}

// A text in PTX is compiled by the driver; other images are code for devices, or may have some.
static bool IsText(std::span<const std::byte> image) {
  constexpr uint32_t kElf = 0x464c457f, kFatbin = 0xba55ed50, kWrapper = 0x466243b1;
  uint32_t first = 0;
  if (image.size() < sizeof(first)) return false;
  std::memcpy(&first, image.data(), sizeof(first));
  return first != kElf && first != kFatbin && first != kWrapper;
}

// Whether the module may be loaded, and the options that rules have for the compiler.
static CUresult AskRules(CallContext& context, const std::string& name, rules::JitChange* change) {
  auto rules = context.session().rules().Get();
  const std::string rule = rules::DeniedBy(*rules, "cuModuleLoad", name);
  if (!rule.empty()) return context.Deny(rule, "to load module " + name);
  *change = rules::DecideJit(*rules, name);
  for (uint32_t place : rules::RulesOfJit(*rules, name)) context.session().rules().CountCall(place);
  return CUDA_SUCCESS;
}

// NVIDIA's driver places a library's variables at its first use in a context. For a session that
// may move that is its load, so that the order is the same in the next worker. What fails here
// fails at the first use, too.
static void PlaceVariables(WorkerSession& session, const Library& library) {
  if (!session.cubins_of() || library.library == nullptr) return;
  CUmodule module = nullptr;
  (void)session.driver().cuLibraryGetModule(&module, library.library);
}

static CUresult Load(CallContext& context, std::span<const std::byte> image, JitOptions& options,
                     Library* library) {
  WorkerSession& session = context.session();
  const DriverTable& driver = context.driver();
  const Journal::Placing placing(session.journal(), context.call().position);
  if (library->context != nullptr) {
    return driver.cuModuleLoadDataEx(&library->module, image.data(), options.count(),
                                     options.names(), options.values());
  }
  CUresult result =
      driver.cuLibraryLoadData(&library->library, image.data(), options.names(), options.values(),
                               options.count(), nullptr, nullptr, 0);
  if (result == CUDA_SUCCESS) PlaceVariables(session, *library);
  return result;
}

static CUresult Unload(WorkerSession& session, uint64_t position, Library& library) {
  for (uint64_t function : library.functions) session.functions.Take(function);
  {
    base::MutexLock lock(library.mutex);
    for (uint64_t reference : library.references) session.references.Take(reference);
  }
  session.chains().ForgetAll();
  const Journal::Placing placing(session.journal(), position);
  if (library.library != nullptr) return session.driver().cuLibraryUnload(library.library);
  return session.driver().cuModuleUnload(library.module);
}

// A module is in one context, a library in every one.
static CUresult ChargeVariables(CallContext& context, const calls::lwModuleLoad& call,
                                std::span<const std::byte> image, Library* library,
                                std::vector<std::pair<Charges::Key, Charge>>* charged) {
  WorkerSession& session = context.session();
  std::vector<std::shared_ptr<Context>> contexts = {context.context()};
  if (call.as_library) contexts = session.contexts.All();
  bool limited = session.charges().IsLimited(contexts.empty() ? 0 : contexts.front()->device);
  library->variable_bytes = AllocatedBytes(VariableBytes(image, limited));
  for (auto& each : contexts) {
    Charge charge;
    CUresult result = session.charges().Take(each->device, library->variable_bytes, &charge);
    if (result != CUDA_SUCCESS) return result;
    charged->emplace_back(Charges::Key{Charges::Kind::kLibrary, call.library, each->id},
                          std::move(charge));
  }
  return CUDA_SUCCESS;
}

// A session that moved here brings its images along.
static CUresult Fetch(CallContext& context, const calls::lwModuleLoad& call,
                      Transfers::Image* fetched, uint32_t* knowledge) {
  WorkerSession& session = context.session();
  const uint64_t position = context.call().position;
  if (!session.journal().GiveImage(position, &fetched->bytes, knowledge)) {
    LONGWIRE_TRY(FetchImage(session.image_sources(), call, fetched, knowledge));
  }
  session.journal().TookImage(position, fetched->bytes, *knowledge);
  return CUDA_SUCCESS;
}

CUresult Do_lwModuleLoad(CallContext& context, const calls::lwModuleLoad& call,
                         calls::lwModuleLoad::Reply* reply) {
  WorkerSession& session = context.session();
  Transfers::Image fetched;
  LONGWIRE_TRY(Fetch(context, call, &fetched, &reply->knowledge));
  std::vector<std::byte>& image = fetched.bytes;
  if (!ImageFits(image, call.bytes)) return CUDA_ERROR_INVALID_IMAGE;
  const std::string name = NameOfModule(session, call, image);
  rules::JitChange change;
  if (session.rules().any()) LONGWIRE_TRY(AskRules(context, name, &change));
  HostMemory::Share share(session.host_memory(), HostUse::kModules);
  if (!session.host_memory().MayLoad(session.libraries.size()) || !share.Resize(call.bytes)) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (!call.as_library && context.context() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  // A library needs no context to be loaded, but the driver describes its kernels' parameters only
  // with one.
  if (context.context() == nullptr && !session.devices().empty()) {
    session.SetPrimaryContext(session.devices().front());
  }
  const DriverTable& driver = context.driver();
  CUresult result = call.parts ? LinkParts(context, call, change, &image, reply) : CUDA_SUCCESS;
  if (result != CUDA_SUCCESS) return result;
  session.printing().Loads(image);
  JitOptions options(call.option, call.option_value);
  options.Apply(change);
  auto library = std::make_shared<Library>();
  library->id = call.library;
  library->share = std::move(share);
  std::vector<std::pair<Charges::Key, Charge>> charged;
  result = ChargeVariables(context, call, image, library.get(), &charged);
  if (result != CUDA_SUCCESS) return result;
  if (!call.as_library) library->context = context.context();
  result = Load(context, image, options, library.get());
  TellOutputs(context, options, reply);
  if (result != CUDA_SUCCESS) return result;
  std::vector<std::shared_ptr<Function>> functions;
  result = ListFunctions(driver, image, *library, &functions);
  reply->functions = functions.size();
  if (result == CUDA_SUCCESS &&
      !library->share.Resize(call.bytes + functions.size() * kFunctionBytes)) {
    result = CUDA_ERROR_OUT_OF_MEMORY;
  }
  for (size_t i = 0; i < functions.size() && result == CUDA_SUCCESS; ++i) {
    functions[i]->module = name;
    functions[i]->of_ptx = IsText(image);
    functions[i]->id = session.next_worker_handle.fetch_add(1);
    library->functions.push_back(functions[i]->id);
    bool added = session.functions.Insert(functions[i]->id, functions[i]);
    if (!added) result = CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (result == CUDA_SUCCESS && !session.libraries.Insert(call.library, library)) {
    result = CUDA_ERROR_INVALID_HANDLE;
  }
  if (result != CUDA_SUCCESS) {
    Unload(session, context.call().position, *library);
    return result;
  }
  for (auto& [key, charge] : charged) session.charges().Keep(key, std::move(charge));
  bool few = functions.size() <= kMaxFunctionsWithAttributes;
  DescribeFunctions(context, functions, few ? call.attributes_device : -1, &reply->function);
  return CUDA_SUCCESS;
}

CUresult Do_lwModuleFunctions(CallContext& context, const calls::lwModuleFunctions& call,
                              calls::lwModuleFunctions::Reply* reply) {
  WorkerSession& session = context.session();
  auto library = session.libraries.Find(call.library);
  if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (call.first >= library->functions.size()) return CUDA_ERROR_INVALID_VALUE;
  if (context.context() == nullptr && !session.devices().empty()) {
    session.SetPrimaryContext(session.devices().front());
  }
  std::vector<std::shared_ptr<Function>> rest;
  for (size_t i = call.first; i < library->functions.size(); ++i) {
    auto function = session.functions.Find(library->functions[i]);
    if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    rest.push_back(function);
  }
  DescribeFunctions(context, rest, -1, &reply->function);
  return CUDA_SUCCESS;
}

CUresult Do_lwModuleUnload(CallContext& context, const calls::lwModuleUnload& call,
                           calls::lwModuleUnload::Reply*) {
  auto library = context.session().libraries.Take(call.library);
  if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (library->context != nullptr) context.session().SetContext(*library->context);
  base::MutexLock lock(DriversLinker());
  CUresult result = Unload(context.session(), context.call().position, *library);
  lock.Unlock();
  context.session().charges().Drop(Charges::Kind::kLibrary, library->id);
  return result;
}

CUresult Do_lwModuleGlobal(CallContext& context, const calls::lwModuleGlobal& call,
                           calls::lwModuleGlobal::Reply* reply) {
  auto library = context.session().libraries.Find(call.library);
  if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  std::string name(call.name);
  CUdeviceptr address = 0;
  size_t bytes = 0;
  const DriverTable& driver = context.driver();
  CUresult result = CUDA_ERROR_NOT_FOUND;
  if (call.managed) {
    if (library->library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    result = driver.cuLibraryGetManaged(&address, &bytes, library->library, name.c_str());
  } else if (library->library != nullptr) {
    result = driver.cuLibraryGetGlobal(&address, &bytes, library->library, name.c_str());
  } else {
    result = driver.cuModuleGetGlobal_v2(&address, &bytes, library->module, name.c_str());
  }
  if (result != CUDA_SUCCESS) return result;
  int managed = 0;
  driver.cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address);
  reply->address = address;
  reply->bytes = bytes;
  reply->managed = managed != 0;
  return result;
}

CUresult Do_lwUnifiedFunction(CallContext& context, const calls::lwUnifiedFunction& call,
                              calls::lwUnifiedFunction::Reply* reply) {
  auto library = context.session().libraries.Find(call.library);
  if (library == nullptr || library->library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  void* address = nullptr;
  CUresult result = context.driver().cuLibraryGetUnifiedFunction(&address, library->library,
                                                                 std::string(call.name).c_str());
  reply->address = reinterpret_cast<uint64_t>(address);
  return result;
}

}  // namespace longwire::worker
