// Reading the configuration again while the daemon runs: all of it comes into force, or nothing.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "server/config/live_config.h"
#include "server/daemon/settings/options.h"

namespace longwire::daemon {

class Reloader {
 public:
  // Prepares other parts, such as files that the configuration names. False with a sentence, and no
  // effect, if that fails.
  using Preparation = std::function<bool(const config::Config& next, std::string* sentence)>;

  Reloader(CommandLine command_line, config::LiveConfig& live,
           std::string system_file = config::kSystemFile)
      : command_line_(std::move(command_line)), live_(live), system_file_(std::move(system_file)) {}

  // Called last, when all checks have passed. Set it before the first Reload.
  void set_preparation(Preparation preparation) { preparation_ = std::move(preparation); }

  struct Outcome {
    bool done = false;
    // The changes, or all the reasons for a refusal.
    std::vector<std::string> sentences;
  };
  // `who`: the requester, for the log. Thread-safe; sessions go on.
  Outcome Reload(const std::string& who);

 private:
  Outcome TakeOver() LONGWIRE_REQUIRES(mutex_);

  const CommandLine command_line_;
  config::LiveConfig& live_;
  const std::string system_file_;
  Preparation preparation_;
  base::Mutex
      mutex_;  // one reload at a time; without a rank: files are read, and the warden is notified
};

}  // namespace longwire::daemon
