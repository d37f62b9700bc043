// Verifies and compiles hooks. The engine is DPDK's librte_bpf, which needs some thirty libraries:
// it is in a shared object of its own, loaded when the first policy is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "policy/hook_code.h"

namespace longwire::policy {

// Of a hook, with its context; the result is what it returns.
using MachineCode = uint64_t (*)(void*);
using Helper = uint64_t (*)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);

struct HelperShape {
  const char* name;
  Helper function;
  uint32_t arguments;  // numbers, 64 bits each; so is the result
};

class CompiledHook {
 public:
  virtual ~CompiledHook() = default;
  // The context is as large as was said to Compile.
  virtual uint64_t Run(void* context) const = 0;
  // Machine code; null: it is interpreted, because this process may not make any.
  virtual MachineCode function() const = 0;
};

class Engine {
 public:
  virtual ~Engine() = default;
  // Null with a sentence that names the function and the line.
  virtual std::unique_ptr<CompiledHook> Compile(const HookCode& code, size_t context_bytes,
                                                std::span<const HelperShape> helpers,
                                                std::string* sentence) = 0;
};

// What the shared object exports; `version` is that of the program that loads it. Null: another
// version's.
inline constexpr char kEngineSymbol[] = "longwire_policy_engine";
using MakeEngine = Engine* (*)(const char* version);

// That of one file; null with a sentence. It stays loaded.
Engine* OpenEngine(const std::string& file, std::string* sentence);

// Loads the engine, once for the process; null with a sentence. `file`: by default the one that is
// installed with the running program, ../lib/longwire/liblongwire-policy.so from its folder.
Engine* LoadEngine(std::string* sentence, const std::string& file = "");

}  // namespace longwire::policy
