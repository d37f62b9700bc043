// longwire usage: what sessions have used, summed up, on the server's host.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <memory>

#include "cli/usage/sums.h"
#include "server/config/config.h"
#include "server/daemon/settings/paths.h"

namespace longwire::cli {
namespace {

constexpr const char* kUsageFooter =
    "Each session that has ended has one record; sessions that run have none yet. MEMORY x TIME is "
    "the device memory that a session had leased, over time: 2.0 GiB h is 1 GiB for two hours. UP "
    "is "
    "from the program to the server. docs/usage.md says how all is measured.\n\n"
    "The exit status is 0 if all records could be read (damaged lines are counted), 1 if not, 2 if "
    "this command was called wrongly.";
constexpr const char* kUsualFile = "/var/lib/longwire/usage.jsonl";

// Empty with a sentence when longwired keeps none.
std::string DefaultFile(std::string* sentence) {
  config::Draft draft;
  config::Problems problems;
  if (access(config::kSystemFile, F_OK) == 0) {
    config::ReadFile(config::kSystemFile, &draft, &problems);
  }
  const std::string& told = draft.config.usage().file();
  *sentence = std::string("longwired keeps no records: usage.file of ") + config::kSystemFile +
              " is none; --file names a file";
  if (told == "none") return "";
  return told.empty() ? kUsualFile : told;
}

int64_t Now() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1000;
}

int Fail(const std::string& sentence) {
  std::fprintf(stderr, "longwire usage: %s\n", sentence.c_str());
  return 1;
}

int Usage(usage::Options options) {
  std::string sentence;
  if (options.since >= options.until) {
    RefuseValue("--until is not after --since. See longwire usage --help");
  }
  if (options.file.empty()) options.file = DefaultFile(&sentence);
  if (options.file.empty()) return Fail(sentence);
  usage::Sums sums;
  auto take = [&](const usage::Record& record) { sums.Add(record, options); };
  if (!usage::ReadRecords(options.file, take, &sums.read, &sentence)) return Fail(sentence);
  std::string text = options.json ? SumsJson(sums, options) + "\n" : SumsText(sums, options);
  std::fputs(text.c_str(), stdout);
  return 0;
}

}  // namespace

void AddUsage(CommandLine& line) {
  auto options = std::make_shared<usage::Options>();
  CLI::App& command =
      line.Add(nullptr, "usage", "what the sessions of this host's longwired have used",
               [options] { return Usage(*options); });
  usage::Describe(command, Now(), options.get());
  command.footer(kUsageFooter);
}

}  // namespace longwire::cli
