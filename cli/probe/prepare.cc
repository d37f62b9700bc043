#include "cli/probe/prepare.h"

#include <cstdlib>
#include <filesystem>
#include <span>

#include "base/environment.h"
#include "cli/policy/files.h"
#include "cli/program_environment.h"
#include "policy/engine.h"

namespace longwire::cli {
namespace {

namespace fs = std::filesystem;

// Whether the program writes a trace, which has room for what probes saw begin and end.
bool IsTraced() {
  const char* file = base::Environment("LONGWIRE_TRACE_FILE");
  return file != nullptr && *file != '\0';
}

// The tool of that name, or else the file; empty: there is none.
std::string FindTool(const std::string& tool, bool* is_own) {
  const std::string place = LibraryFolder() + "/probes/" + tool;
  std::error_code error;
  const bool traced = IsTraced() && fs::exists(place + "_traced.o", error);
  const std::string file = place + (traced ? "_traced.o" : ".o");
  *is_own = tool.find('/') == std::string::npos && fs::exists(file, error);
  if (*is_own) return file;
  if (!fs::exists(tool, error)) return "";
  return fs::absolute(tool, error).string();
}

}  // namespace

std::optional<probe::ProbeSet> LoadVerified(const std::string& tool, std::string* file,
                                            std::string* sentence) {
  bool is_own = false;
  *file = FindTool(tool, &is_own);
  if (file->empty()) {
    *sentence = "there is no tool and no file '" + tool + "'; see longwire probe --help";
    return std::nullopt;
  }
  const auto bytes = ReadPolicyFile(*file, sentence);
  policy::Engine* engine = bytes && !is_own ? policy::LoadEngine(sentence) : nullptr;
  if (!bytes || (!is_own && engine == nullptr)) return std::nullopt;
  auto set = probe::LoadProbes(std::as_bytes(std::span(*bytes)), engine, sentence);
  if (!set) *sentence = tool + ": " + *sentence;
  return set;
}

std::string PrepareProbes(const std::string& tool, const std::string& kernels,
                          const std::string& output) {
  std::string file, sentence;
  if (!LoadVerified(tool, &file, &sentence)) return sentence;
  setenv("LONGWIRE_PROBE", file.c_str(), 1);
  setenv("LONGWIRE_PROBE_LIBRARY", (LibraryFolder() + "/liblongwire-probe.so").c_str(), 1);
  setenv("LONGWIRE_PROBE_KERNELS", kernels.c_str(), 1);
  std::error_code error;
  const std::string report = output.empty() ? "" : fs::absolute(output, error).string();
  setenv("LONGWIRE_PROBE_FILE", report.c_str(), 1);
  return "";
}

}  // namespace longwire::cli
