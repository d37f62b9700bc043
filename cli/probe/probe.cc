// longwire probe: a program with probes in its kernels.
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "base/reason.h"
#include "cli/probe/prepare.h"
#include "cli/program_environment.h"
#include "cli/run.h"
#include "probe/rewrite.h"
#include "wire/descriptors.h"

namespace longwire::cli {
namespace {

constexpr const char* kProbeFooter =
    R"(TOOL is an object of your own (docs/probes.md: in C, compiled by clang -target bpf), or
one of
  threadhist       how many cycles warps run: a histogram
  kernelretsnoop   when each warp enters and leaves its kernel: records
  launchlate       how long after the first one of its launch each block begins: a histogram
  smload           warps and cycles of each multiprocessor
  memhist          how memory is accessed: bytes at once, loads, stores and atomics

Probes are put into kernels of which the program has PTX; those that have none are named in the
report, and run without. What the program computes stays the same. The report comes on standard
error when the program ends, one for each of its processes.

The exit status is as that of longwire run.)";

struct Probed {
  std::string tool, kernels, output, ptx, trace;
};

// The text with probes on standard output.
std::string Print(const Probed& probed) {
  std::string file, sentence;
  const auto set = LoadVerified(probed.tool, &file, &sentence);
  if (!set) return sentence;
  std::ifstream input(probed.ptx, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(input), {}};
  if (!input.is_open() || input.bad()) return probed.ptx + " cannot be read: name a file of PTX";
  const std::string kernels = probed.kernels.empty() ? "*" : probed.kernels;
  const auto rewritten = probe::Rewrite(text, *set, kernels, &sentence);
  if (!rewritten) return probed.ptx + ": " + sentence;
  std::fputs(rewritten->sites == 0 ? text.c_str() : rewritten->text.c_str(), stdout);
  return "";
}

// A report that nobody can write would be noticed when the program has ended.
bool IsWritable(const std::string& file) {
  FILE* opened = wire::OpenStream(file.c_str(), "a");
  if (opened == nullptr) {
    std::fprintf(stderr, "longwire probe: --output %s: %s; name a file where you may write\n",
                 file.c_str(), base::Reason(errno).c_str());
    return false;
  }
  std::fclose(opened);
  return true;
}

int Run(const Probed& probed, const Arguments& words) {
  const bool prints = !probed.ptx.empty();
  const bool reports = !prints && !probed.output.empty() && !words.empty();
  if (reports && !IsWritable(probed.output)) return kUsageStatus;
  const std::string wrong =
      prints || probed.trace.empty() || words.empty() ? std::string() : TraceInto(probed.trace);
  if (!wrong.empty()) {
    std::fprintf(stderr, "longwire probe: --trace-file %s\n", wrong.c_str());
    return kUsageStatus;
  }
  const std::string sentence =
      prints ? Print(probed) : PrepareProbes(probed.tool, probed.kernels, probed.output);
  if (sentence.empty()) return prints ? 0 : RunProgram("probe", words, "");
  std::fprintf(stderr, "longwire probe: %s\n", sentence.c_str());
  return kUsageStatus;
}

}  // namespace

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
  command
      .add_option("--trace-file", probed->trace,
                  "trace the program into the file, as longwire trace -o does, with the spans of "
                  "warps or blocks that threadhist, kernelretsnoop, launchlate or an own probe has")
      ->type_name("FILE");
  command
      .add_option("--print", probed->ptx,
                  "run nothing: print this file of PTX with the probes in it, for ptxas -v")
      ->type_name("FILE");
  AddProgram(line, command, words.get());
  line.TakesProgram(command, ProgramBegins::kBehindDashes, words.get());
  command.footer(kProbeFooter);
}

}  // namespace longwire::cli
