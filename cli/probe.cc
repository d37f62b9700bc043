// longwire probe: a program with probes in its kernels.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <span>

#include "cli/policy/files.h"
#include "cli/probe.h"
#include "cli/program_environment.h"
#include "cli/run.h"
#include "policy/engine.h"
#include "probe/probe.h"

namespace longwire::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFooter =
    R"(TOOL is an object of your own (docs/probes.md, in C, compiled by clang -target bpf), or one of
  threadhist       how many cycles warps run: a histogram
  kernelretsnoop   when each warp leaves its kernel: records
  launchlate       how long after the first one of its launch each block begins: a histogram
  smload           warps and cycles of each multiprocessor
  memhist          how memory is accessed: bytes at once, loads, stores and atomics

Probes are put into kernels of which the program has PTX; those that have none are named in the
report, and run without. What the program computes stays the same. The report comes on standard
error when the program ends, one for each of its processes.

The exit status is as that of longwire run.)";

struct Probed {
  std::string tool, kernels, output;
};

// The tool of that name, or else the file; empty: there is none.
std::string FindTool(const std::string& tool, bool* is_own) {
  const std::string file = LibraryFolder() + "/probes/" + tool + ".o";
  std::error_code error;
  *is_own = tool.find('/') == std::string::npos && fs::exists(file, error);
  if (*is_own) return file;
  if (!fs::exists(tool, error)) return "";
  return fs::absolute(tool, error).string();
}

// Those that come with Longwire are verified when it is built.
bool Verify(const std::string& file, bool is_own, std::string* sentence) {
  const auto bytes = ReadPolicyFile(file, sentence);
  if (!bytes) return false;
  policy::Engine* engine = is_own ? nullptr : policy::LoadEngine(sentence);
  if (!is_own && engine == nullptr) return false;
  if (probe::LoadProbes(std::as_bytes(std::span(*bytes)), engine, sentence)) return true;
  *sentence = file + ": " + *sentence;
  return false;
}

int Run(const Probed& probed, const Arguments& words) {
  const std::string sentence = PrepareProbes(probed.tool, probed.kernels, probed.output);
  if (sentence.empty()) return RunProgram("probe", words, "");
  std::fprintf(stderr, "longwire probe: %s\n", sentence.c_str());
  return kUsageStatus;
}

}  // namespace

std::string PrepareProbes(const std::string& tool, const std::string& kernels,
                          const std::string& output) {
  bool is_own = false;
  const std::string file = FindTool(tool, &is_own);
  if (file.empty()) {
    return "there is no tool and no file '" + tool + "'; see longwire probe --help";
  }
  std::string sentence;
  if (!Verify(file, is_own, &sentence)) return sentence;
  setenv("LONGWIRE_PROBE", file.c_str(), 1);
  setenv("LONGWIRE_PROBE_LIBRARY", (LibraryFolder() + "/liblongwire-probe.so").c_str(), 1);
  setenv("LONGWIRE_PROBE_KERNELS", kernels.c_str(), 1);
  std::error_code error;
  const std::string report = output.empty() ? "" : fs::absolute(output, error).string();
  setenv("LONGWIRE_PROBE_FILE", report.c_str(), 1);
  return "";
}

void AddProbe(CommandLine& line) {
  auto words = std::make_shared<Arguments>();
  auto probed = std::make_shared<Probed>();
  CLI::App& command = line.Add(nullptr, "probe", "as run, with probes in the program's kernels",
                               [=] { return Run(*probed, *words); });
  command.add_option("TOOL", probed->tool, "a tool, or an object of probes")->required();
  command
      .add_option("--kernels", probed->kernels,
                  "only kernels whose name in the module fits, with * and ?, such as *matmul*")
      ->type_name("PATTERN");
  command.add_option("-o,--output", probed->output, "add the report to the file")
      ->type_name("FILE");
  AddProgram(line, command, words.get());
  line.TakesProgram(command, ProgramBegins::kBehindDashes, words.get());
  command.footer(kFooter);
}

}  // namespace longwire::cli
