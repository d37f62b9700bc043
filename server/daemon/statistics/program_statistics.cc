#include "server/daemon/statistics/program_statistics.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>
#include <tuple>
#include <utility>

#include "base/reason.h"
#include "base/start_thread.h"
#include "link/transport/log.h"

namespace longwire::daemon {
namespace {

using transport::Log;
using transport::LogLevel;

constexpr std::chrono::seconds kBetweenWrites{60};
constexpr size_t kPageLimit = 4;  // of one session, which reloads add to
constexpr size_t kLargestFile = size_t{128} << 20;

uint32_t Today() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<uint32_t>(std::chrono::duration_cast<std::chrono::hours>(now).count() / 24);
}

// Of today: what is counted now without what had been counted when the day began.
statistics::Times Since(const statistics::Times& now, const statistics::Times& before) {
  statistics::Times times{};
  for (size_t i = 0; i < times.size(); ++i) times[i] = now[i] - std::min(now[i], before[i]);
  return times;
}

}  // namespace

ProgramStatistics::ProgramStatistics(std::string file) : file_(std::move(file)) {}

bool ProgramStatistics::Start(std::string* sentence) {
  if (file_.empty()) return true;
  std::error_code error;
  const bool small = std::filesystem::file_size(file_, error) <= kLargestFile && !error;
  std::ostringstream all;
  if (small) all << std::ifstream(file_, std::ios::binary).rdbuf();
  const std::string text = all.str();
  {
    base::MutexLock lock(mutex_);
    size_t line = 0;
    if (!history_.Parse(text, &line)) {
      Log(LogLevel::kWarning,
          file_ + ": line " + std::to_string(line) + " is no kernel's day; it is left out");
    }
  }
  if (base::StartThread(&thread_, [this] { Loop(); })) return true;
  *sentence = file_ + " is not kept: " + base::ReasonOfNoThread(errno);
  return false;
}

void ProgramStatistics::Stop() {
  {
    base::MutexLock lock(mutex_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  if (!thread_.joinable()) return;
  thread_.join();
  Write();
}

void ProgramStatistics::Loop() {
  while (true) {
    {
      base::MutexLock lock(mutex_);
      const auto deadline = Clock::now() + kBetweenWrites;
      while (!stopping_ && changed_.WaitUntil(lock, deadline)) {
      }
      if (stopping_) return;
    }
    Write();
  }
}

std::shared_ptr<statistics::Page> ProgramStatistics::Begin(const CountedSession& session) {
  base::MutexLock lock(mutex_);
  auto running = sessions_.find(session.id);
  if (!session.kernels && session.rules.empty()) return nullptr;
  auto page = statistics::Page::Create();
  if (page == nullptr) return nullptr;
  page->kernels_on() = session.kernels ? 1 : 0;
  if (running == sessions_.end()) {
    running = sessions_.emplace(session.id, Running{Clock::now(), {}, session.goes_on_later}).first;
  }
  auto& pages = running->second.pages;
  // Its worker counts in the newest one. What it still had under way for an old one is long done.
  if (pages.size() == kPageLimit) {
    Fold(pages.front());
    pages.erase(pages.begin());
  }
  pages.push_back({session, page});
  return page;
}

void ProgramStatistics::AddPage(const Counted& counted, ProgramFigures* program) {
  program->tenant = counted.session.tenant;
  program->program = counted.session.program;
  program->local = counted.session.local;
  if (counted.session.kernels) {
    program->figures.Add(statistics::Read(*counted.page));
    program->figures.Limit(kKernelLimit);
  }
  for (uint32_t i = 0; i < counted.session.rules.size() && i < statistics::kPageRules; ++i) {
    const std::string& name = counted.session.rules[i];
    if (program->rules.size() >= kRuleLimit && !program->rules.contains(name)) continue;
    RuleUse& use = program->rules[name];
    use.launches += counted.page->rule_launches(i).load(std::memory_order_relaxed);
    use.calls += counted.page->rule_calls(i).load(std::memory_order_relaxed);
  }
}

void ProgramStatistics::MakeRoom() {
  if (programs_.size() < kPrograms) return;
  auto oldest =
      std::ranges::min_element(programs_, {}, [](const auto& one) { return one.second.last; });
  programs_.erase(oldest);
}

void ProgramStatistics::Fold(const Counted& counted) {
  const ProgramKey key{counted.session.tenant, counted.session.program};
  if (!programs_.contains(key)) MakeRoom();
  Program& program = programs_[key];
  program.last = Clock::now();
  AddPage(counted, &program.ended);
}

void ProgramStatistics::Ended(uint64_t session) {
  base::MutexLock lock(mutex_);
  auto running = sessions_.find(session);
  if (running == sessions_.end()) return;
  for (const Counted& counted : running->second.pages) Fold(counted);
  if (running->second.prepared) {
    sessions_.erase(running);
    return;
  }
  const CountedSession& last = running->second.pages.back().session;
  Program& program = programs_[{last.tenant, last.program}];
  ++program.ended.ended;
  program.ended.seconds +=
      std::chrono::duration<double>(Clock::now() - running->second.since).count();
  sessions_.erase(running);
}

void ProgramStatistics::GoesOn(uint64_t session, uint64_t former) {
  base::MutexLock lock(mutex_);
  auto before = sessions_.find(former);
  auto now = sessions_.find(session);
  if (now != sessions_.end()) now->second.prepared = false;
  if (now == sessions_.end() || before == sessions_.end()) return;
  now->second.since = before->second.since;
  before->second.prepared = true;
}

std::map<ProgramStatistics::ProgramKey, ProgramFigures> ProgramStatistics::Sums() {
  std::map<ProgramKey, ProgramFigures> sums;
  for (const auto& [key, program] : programs_) sums[key] = program.ended;
  const Clock::time_point now = Clock::now();
  for (const auto& [id, running] : sessions_) {
    const CountedSession& session = running.pages.back().session;
    ProgramFigures& sum = sums[{session.tenant, session.program}];
    if (!running.prepared) {
      ++sum.sessions;
      sum.seconds += std::chrono::duration<double>(now - running.since).count();
    }
    for (const Counted& counted : running.pages) AddPage(counted, &sum);
  }
  return sums;
}

std::vector<ProgramFigures> ProgramStatistics::List() {
  base::MutexLock lock(mutex_);
  NoteDay(Today());
  std::vector<ProgramFigures> list;
  for (auto& [key, sum] : Sums()) list.push_back(std::move(sum));
  return list;
}

void ProgramStatistics::NoteDay(uint32_t day) {
  if (file_.empty()) return;
  for (auto& [key, sum] : Sums()) {
    if (!programs_.contains(key)) MakeRoom();
    Program& program = programs_[key];
    if (program.day == 0) program.day = day;
    const bool over = program.day != day;
    for (const auto& [kernel, figures] : sum.figures.kernels) {
      auto before = program.before.kernels.find(kernel);
      const bool known = before != program.before.kernels.end();
      const statistics::Times times =
          known ? Since(figures.times, before->second.times) : figures.times;
      const uint64_t timed = figures.timed - (known ? before->second.timed : 0);
      if (timed == 0 || timed > figures.timed) continue;
      history_.Note({key.first, key.second, kernel}, program.day, statistics::Median(times), timed);
    }
    if (!over) continue;
    program.before = std::move(sum.figures);
    program.day = day;
  }
}

std::optional<statistics::Drift> ProgramStatistics::DriftOf(const std::string& tenant,
                                                            const std::string& program,
                                                            const statistics::KernelKey& kernel) {
  base::MutexLock lock(mutex_);
  return history_.DriftOf({tenant, program, kernel}, Today());
}

std::vector<DriftedKernel> ProgramStatistics::Drifts() {
  if (file_.empty()) return {};
  std::vector<DriftedKernel> drifts;
  {
    base::MutexLock lock(mutex_);
    const uint32_t today = Today();
    NoteDay(today);
    for (const auto& [key, drift] : history_.Anomalies(today)) {
      const bool same = !drifts.empty() && drifts.back().kernel == key.kernel.name &&
                        drifts.back().program == key.program && drifts.back().tenant == key.tenant;
      if (same) {
        drifts.back().ratio = std::max(drifts.back().ratio, drift.ratio());
      } else {
        drifts.push_back({key.tenant, key.program, key.kernel.name, drift.ratio()});
      }
    }
  }
  auto change = [](const DriftedKernel& one) { return std::max(one.ratio, 1 / one.ratio); };
  std::ranges::stable_sort(drifts, std::greater{}, change);
  // The same name of several modules is one series.
  std::set<std::tuple<std::string, std::string, std::string>> told;
  std::erase_if(drifts, [&](const DriftedKernel& one) {
    return told.size() >= kDriftLimit || !told.emplace(one.tenant, one.program, one.kernel).second;
  });
  return drifts;
}

// Replaces the file at once: who reads it, or a host that goes down, finds the old or the new one.
void ProgramStatistics::Write() {
  std::string text;
  {
    base::MutexLock lock(mutex_);
    NoteDay(Today());
    text = history_.Text();
  }
  if (text.empty()) return;
  const std::string next = file_ + ".new";
  std::ofstream out(next, std::ios::binary | std::ios::trunc);
  out << text;
  out.close();
  const bool written = out.good() && std::rename(next.c_str(), file_.c_str()) == 0;
  const int error = errno;
  base::MutexLock lock(mutex_);
  if (!written && !std::exchange(complained_, true)) {
    Log(LogLevel::kWarning, file_ +
                                " cannot be written, so times of kernels are not kept over days: " +
                                base::Reason(error) + "; see kernel_history: of the configuration");
  }
  if (written) complained_ = false;
}

}  // namespace longwire::daemon
