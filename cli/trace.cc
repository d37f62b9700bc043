// longwire trace: what a program does, as lines on standard error or as a file of trace events.

#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <memory>

#include "cli/program_environment.h"
#include "cli/run.h"

namespace longwire::cli {
namespace {

constexpr const char* kTraceFooter =
    R"(The file has what the program and the server did on one clock, that of this host: the calls
of each thread, their way (wire, queue, gate), what the worker did for them, what the device did by
stream, and the program's memory. https://ui.perfetto.dev and chrome://tracing open it; nothing is
sent anywhere. A file that is there already is overwritten. Further processes of the program write
FILE.PID.

The exit status is as that of longwire run.)";

struct Traced {
  bool calls = false;
  bool allocations = false;
  bool summary = false;
  std::string file;   // of trace events; empty: none
  std::string limit;  // of the file, bytes; empty: the usual
};

int Refuse(const std::string& what) {
  std::fprintf(stderr, "longwire trace: %s\n", what.c_str());
  return kUsageStatus;
}

int Trace(Traced traced, const Arguments& words) {
  const std::pair<bool, const char*> wanted[] = {
      {traced.calls, "calls"}, {traced.allocations, "allocations"}, {traced.summary, "summary"}};
  std::string list;
  for (const auto& [wants, word] : wanted) {
    if (wants) list += (list.empty() ? "" : ",") + std::string(word);
  }
  if (list.empty() && traced.file.empty()) return Refuse("of what? See longwire trace --help");
  if (!traced.limit.empty() && traced.file.empty()) {
    return Refuse("--limit is for the file of -o; give both");
  }
  if (!traced.file.empty() && !words.empty()) {
    const std::string problem = TraceInto(traced.file);
    if (!problem.empty()) return Refuse("-o " + problem);
    if (!traced.limit.empty()) setenv("LONGWIRE_TRACE_FILE_LIMIT", traced.limit.c_str(), 1);
  }
  return RunProgram("trace", words, list);
}

}  // namespace

void AddTrace(CommandLine& line) {
  auto words = std::make_shared<Arguments>();
  auto traced = std::make_shared<Traced>();
  CLI::App& command = line.Add(nullptr, "trace", "as run, and tell what the program does",
                               [=] { return Trace(*traced, *words); });
  command
      .add_option("-o,--output", traced->file,
                  "a file of trace events: calls, their way, kernels and copies, for Perfetto")
      ->type_name("FILE");
  command
      .add_option_function<uint64_t>(
          "--limit", [traced](uint64_t bytes) { traced->limit = std::to_string(bytes); },
          "how large the file may become, at least 64KiB (1GiB unless given); then it ends, "
          "with a sentence")
      ->type_name("SIZE")
      ->transform(CLI::AsSizeValue(true) & CLI::Range(uint64_t{64} << 10, UINT64_MAX));
  command.add_flag("--calls", traced->calls,
                   "a line for each CUDA call: its result, when it began and how long it took");
  command.add_flag("--allocations", traced->allocations,
                   "a line for each piece of device memory that is allocated or freed, with its "
                   "size and what the program has in all");
  command.add_flag("--summary", traced->summary, "counts of calls and waits when it ends");
  AddProgram(line, command, words.get());
  command.footer(kTraceFooter);
}

}  // namespace longwire::cli
