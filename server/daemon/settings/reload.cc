#include "server/daemon/settings/reload.h"

#include "link/transport/log.h"

namespace longwire::daemon {

using transport::Log;
using transport::LogLevel;

Reloader::Outcome Reloader::Reload(const std::string& who) {
  base::MutexLock lock(mutex_);
  Outcome outcome = TakeOver();
  const LogLevel level = outcome.done ? LogLevel::kInfo : LogLevel::kError;
  for (const std::string& sentence : outcome.sentences) Log(level, sentence);
  Log(level, "configuration read again for " + who +
                 (outcome.done ? ", in force now" : ", refused: all stays as it was"));
  return outcome;
}

Reloader::Outcome Reloader::TakeOver() {
  config::Problems problems;
  config::Draft next = Configure(command_line_, &problems, system_file_);
  const config::LiveConfig::Snapshot running = live_.Get();
  config::CheckReload(*running, next, &problems);
  if (!problems.empty()) return {false, problems.Sentences()};
  std::string sentence;
  if (preparation_ && !preparation_(next.config, &sentence)) return {false, {sentence}};
  std::vector<std::string> changes = config::Changes(*running, next.config);
  live_.Replace(std::move(next.config));
  return {true, std::move(changes)};
}

}  // namespace longwire::daemon
