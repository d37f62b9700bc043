// Probes: an object of any bytes, put into a module that is known; and any bytes as a module, into
// which probes are put that are known. What is not refused with a sentence is PTX again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <span>
#include <string>

#include "probe/rewrite.h"
#include "softgpu/engine/ptx/ptx_check.h"

namespace {

using longwire::probe::LoadProbes;
using longwire::probe::ProbeSet;
using longwire::probe::Rewrite;

constexpr char kModule[] =
    ".version 7.0\n.target sm_75\n.address_size 64\n"
    ".func f(){\nmembar.gl;\nret;\n}\n"
    ".visible .entry k(.param .u64 out)\n{\n.reg .pred %p;\n.reg .b32 %r;\n.reg .b64 %d;\n"
    "ld.param.u64 %d, [out];\nmov.u32 %r, %tid.x;\nsetp.eq.u32 %p, %r, 0;\n@%p exit;\n"
    "call f;\n@!%p st.global.u32 [%d+4], %r;\nret;\n}\n";

const ProbeSet& KnownProbes() {
  static const ProbeSet known = [] {
    std::ifstream file(PROBE_OBJECT, std::ios::binary);
    const std::string object{std::istreambuf_iterator<char>(file), {}};
    std::string sentence;
    auto set = LoadProbes(std::as_bytes(std::span(object)), nullptr, &sentence);
    if (!set) std::abort();
    return *set;
  }();
  return known;
}

void Check(std::string_view ptx, const ProbeSet& set) {
  std::string sentence;
  const auto rewritten = Rewrite(ptx, set, "*", &sentence);
  if (!rewritten && sentence.empty()) std::abort();
  if (!rewritten || rewritten->sites == 0) return;
  // An exception ends the process, as any other finding does.
  softgpu::ParsePtx(rewritten->text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const bool is_object = size > 0 && data[0] == 0x7f;
  if (!is_object) {
    Check({reinterpret_cast<const char*>(data), size}, KnownProbes());
    return 0;
  }
  std::string sentence;
  const auto set = LoadProbes(std::as_bytes(std::span(data, size)), nullptr, &sentence);
  if (!set && sentence.empty()) std::abort();
  if (set) Check(kModule, *set);
  return 0;
}
