// longwire usage: what sessions have used, summed up, on the server's host.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

#include "cli/usage/sums.h"
#include "server/config/config.h"
#include "server/daemon/settings/paths.h"

namespace longwire::cli {
namespace {

constexpr const char* kHelp =
    R"(longwire usage: what the sessions of this host's longwired have used.

  longwire usage [--since WHEN] [--until WHEN] [--by tenant|identity|program] [--json]
                 [--file FILE]

  --since WHEN  only sessions that ended then or later
  --until WHEN  only sessions that ended before
                WHEN is a time in UTC, such as 2026-11-26 or 2026-11-26T19:20, or so long ago:
                90min, 36h, 7d, 4w
  --by WHAT     a line for each tenant (default), identity or program
  --json        the same for programs
  --file FILE   the records (default: usage.file of /etc/longwire/longwired.yaml, else
                /var/lib/longwire/usage.jsonl); FILE.1, FILE.2 and FILE.3 are read, too

Each session that has ended has one record; sessions that run have none yet. MEMORY x TIME is the
device memory that a session had leased, over time: 2.0 GiB h is 1 GiB for two hours. UP is from
the program to the server. docs/usage.md says how all is measured.

The exit status is 0 if all records could be read (damaged lines are counted), 1 if not, 2 if this
command was called wrongly.
)";
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

}  // namespace

int Usage(const Arguments& arguments) {
  usage::Options options;
  std::string sentence;
  if (!usage::ParseOptions(arguments, Now(), &options, &sentence)) {
    if (!sentence.empty()) Fail(sentence + " See longwire usage --help");
    return kUsageStatus;
  }
  if (options.help) {
    std::fputs(kHelp, stdout);
    return 0;
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

}  // namespace longwire::cli
