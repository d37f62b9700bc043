// What the kernels of each program did and which rules were used for it: summed up over the
// sessions that ran and those that run, and kept over days. Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "server/statistics/figures.h"
#include "server/statistics/history.h"
#include "server/statistics/page.h"

namespace longwire::daemon {

// How often a rule of the operator was used.
struct RuleUse {
  uint64_t launches = 0;
  uint64_t calls = 0;  // and modules
};

struct ProgramFigures {
  std::string tenant;
  std::string program;
  uint32_t sessions = 0;  // that run
  uint64_t ended = 0;     // sessions
  double seconds = 0;     // that they ran, together
  bool local = false;     // its last session came by the local socket
  statistics::Figures figures;
  std::map<std::string, RuleUse> rules;  // by name; of the running sessions' lists all
};

// A kernel whose time has changed over days.
struct DriftedKernel {
  std::string tenant;
  std::string program;
  std::string kernel;
  double ratio = 1;  // of today's median to earlier ones
};

class ProgramStatistics {
 public:
  static constexpr size_t kPrograms = 256;     // who has not run for the longest time goes
  static constexpr size_t kKernelLimit = 256;  // of one program
  static constexpr size_t kRuleLimit = 512;    // of one program
  static constexpr size_t kDriftLimit = 64;    // that are shown, those that changed most

  // `file`: where the medians of each day are kept; empty: nowhere.
  explicit ProgramStatistics(std::string file);
  ~ProgramStatistics() { Stop(); }
  // Keeps the file up to date from now on. False with a sentence if that is not to be had.
  bool Start(std::string* sentence);
  // Writes it for the last time.
  void Stop();

  struct CountedSession {
    uint64_t id = 0;
    std::string tenant;
    std::string program;
    bool local = false;
    bool kernels = false;            // they are counted
    std::vector<std::string> rules;  // names, in the order of the session's list
    bool goes_on_later = false;      // it is being prepared
  };
  // A page that the session's worker is to count in from now on; null if nothing is to be counted,
  // or there is no memory.
  std::shared_ptr<statistics::Page> Begin(const CountedSession& session);
  void Ended(uint64_t session);
  // One that goes on for another one, of the same program, is the same session. Until then it does
  // not count (`goes_on_later` of CountedSession).
  void GoesOn(uint64_t session, uint64_t former);

  std::vector<ProgramFigures> List();
  std::optional<statistics::Drift> DriftOf(const std::string& tenant, const std::string& program,
                                           const statistics::KernelKey& kernel);

  // Of the kernels that ran today, the anomalies; of a kernel with several blocks the largest.
  std::vector<DriftedKernel> Drifts();

 private:
  using Clock = std::chrono::steady_clock;
  using ProgramKey = std::pair<std::string, std::string>;  // tenant, program
  struct Counted {
    CountedSession session;
    std::shared_ptr<statistics::Page> page;
  };
  struct Program {
    ProgramFigures ended;  // of pages that are counted in no more
    Clock::time_point last;
    uint32_t day = 0;            // of `before`
    statistics::Figures before;  // up to the beginning of the day
  };
  struct Running {
    Clock::time_point since;
    std::vector<Counted> pages;  // the newest last
    bool prepared = false;       // does not count yet
  };

  static void AddPage(const Counted& counted, ProgramFigures* program);
  void Fold(const Counted& counted) LONGWIRE_REQUIRES(mutex_);
  void MakeRoom() LONGWIRE_REQUIRES(mutex_);
  std::map<ProgramKey, ProgramFigures> Sums() LONGWIRE_REQUIRES(mutex_);
  void NoteDay(uint32_t day) LONGWIRE_REQUIRES(mutex_);
  void Write();
  void Loop();

  const std::string file_;
  std::thread thread_;

  base::Mutex mutex_{base::ranks::kProgramStatistics};
  base::CondVar changed_;
  std::map<uint64_t, Running> sessions_ LONGWIRE_GUARDED_BY(mutex_);
  std::map<ProgramKey, Program> programs_ LONGWIRE_GUARDED_BY(mutex_);
  statistics::History history_ LONGWIRE_GUARDED_BY(mutex_);
  bool stopping_ LONGWIRE_GUARDED_BY(mutex_) = false;
  bool complained_ LONGWIRE_GUARDED_BY(mutex_) = false;
};

}  // namespace longwire::daemon
