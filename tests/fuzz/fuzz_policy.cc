// A policy's object file, from its first byte to verified code: the reader, the source lines, and
// librte_bpf's verifier and compiler behind it. What it accepts is not run.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

#include "policy/program.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using longwire::policy::Engine;
  static std::string problem;
  static Engine* engine = longwire::policy::LoadEngine(&problem, POLICY_ENGINE);
  if (engine == nullptr) std::abort();
  std::string sentence;
  const auto object = std::as_bytes(std::span(data, size));
  const auto program = longwire::policy::Program::Load("fuzzed", object, *engine, &sentence);
  // Refused with a reason, or it has hooks.
  if (program == nullptr ? sentence.empty() : program->Hooks().empty()) std::abort();
  return 0;
}
