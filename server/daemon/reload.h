// Reading the configuration again while the daemon runs: all of it comes into force, or nothing.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "server/config/live_config.h"
#include "server/daemon/options.h"

namespace longwire::daemon {

class Reloader {
 public:
  // What else has to be in order, such as files that the configuration names; false with a
  // sentence, and as if it had not been asked.
  using Preparation = std::function<bool(const config::Config& next, std::string* sentence)>;

  Reloader(CommandLine command_line, config::LiveConfig& live,
           std::string system_file = config::kSystemFile)
      : command_line_(std::move(command_line)), live_(live), system_file_(std::move(system_file)) {}

  // Comes last, when all else is in order. To be set before anybody reloads.
  void set_preparation(Preparation preparation) { preparation_ = std::move(preparation); }

  struct Outcome {
    bool done = false;
    // What has changed, or all the reasons why nothing has.
    std::vector<std::string> sentences;
  };
  // `who` asked for it, for the log. Thread-safe; sessions go on.
  Outcome Reload(const std::string& who);

 private:
  Outcome TakeOver() LONGWIRE_REQUIRES(mutex_);

  const CommandLine command_line_;
  config::LiveConfig& live_;
  const std::string system_file_;
  Preparation preparation_;
  base::Mutex mutex_;  // one at a time; without a rank: files are read, and the warden is told
};

}  // namespace longwire::daemon
