#include <dlfcn.h>

#include <filesystem>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "policy/engine.h"

namespace longwire::policy {

namespace {

constexpr char kFile[] = "../lib/longwire/liblongwire-policy.so";

// Empty with a sentence.
std::string EngineFile(std::string* sentence) {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) return (program.parent_path() / kFile).lexically_normal();
  *sentence =
      "the engine of policies is looked for beside the running program, but /proc/self/exe "
      "cannot be read (" +
      error.message() + "): mount /proc";
  return "";
}

}  // namespace

Engine* OpenEngine(const std::string& file, std::string* sentence) {
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = dlerror();
    *sentence = std::string("the engine of policies cannot be loaded (") +
                (reason == nullptr ? file : reason) +
                "): install the package longwire-policy and librte-bpf23";
    return nullptr;
  }
  auto make = reinterpret_cast<MakeEngine>(dlsym(library, kEngineSymbol));
  Engine* engine = make == nullptr ? nullptr : make(LONGWIRE_VERSION);
  if (engine == nullptr) {
    *sentence = file + " is not of version " LONGWIRE_VERSION
                       ": install the package longwire-policy of this version";
  }
  return engine;
}

// The engine lives as long as the process: compiled hooks are in it.
Engine* LoadEngine(std::string* sentence, const std::string& file) {
  static base::Mutex mutex(base::ranks::kPolicyEngine);
  static Engine* engine = nullptr;
  base::MutexLock lock(mutex);
  if (engine != nullptr) return engine;
  const std::string path = file.empty() ? EngineFile(sentence) : file;
  if (!path.empty()) engine = OpenEngine(path, sentence);
  return engine;
}

}  // namespace longwire::policy
