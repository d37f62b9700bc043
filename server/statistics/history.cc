#include "server/statistics/history.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <vector>

namespace longwire::statistics {
namespace {

constexpr uint32_t kLeastDays = 3;
constexpr uint64_t kLeastLaunches = 8;  // timed ones
constexpr double kAnomaly = 1.3;        // buckets are 19 % wide

// Names come from programs; a line has them between tabs.
std::string Plain(std::string text) {
  for (char& letter : text) {
    if (static_cast<unsigned char>(letter) < ' ') letter = '?';
  }
  return text;
}

std::vector<std::string> FieldsOf(const std::string& line) {
  std::vector<std::string> fields;
  size_t begin = 0;
  for (size_t end = 0; end != std::string::npos; begin = end + 1) {
    end = line.find('\t', begin);
    fields.push_back(line.substr(begin, end == std::string::npos ? end : end - begin));
  }
  return fields;
}

template <class Number>
bool Take(const std::string& text, Number* number) {
  const char* end = text.data() + text.size();
  auto [rest, problem] = std::from_chars(text.data(), end, *number);
  return problem == std::errc() && rest == end && !text.empty();
}

}  // namespace

bool Drift::is_anomaly() const {
  return days >= kLeastDays && today > 0 && (ratio() >= kAnomaly || ratio() <= 1 / kAnomaly);
}

void History::MakeRoom() {
  if (kernels_.size() < kKernels) return;
  auto oldest = std::ranges::min_element(
      kernels_, {}, [](const auto& one) { return one.second.empty() ? 0 : one.second.back().day; });
  kernels_.erase(oldest);
}

void History::Note(const Key& key, uint32_t day, double median, uint64_t launches) {
  Key plain = key;
  plain.program = Plain(plain.program);
  plain.kernel.name = Plain(plain.kernel.name);
  if (!kernels_.contains(plain)) MakeRoom();
  std::deque<Day>& days = kernels_[plain];
  auto same = std::ranges::find(days, day, &Day::day);
  if (same != days.end() && same->launches > launches) return;
  if (same != days.end()) days.erase(same);
  auto place = std::ranges::find_if(days, [day](const Day& one) { return one.day > day; });
  days.insert(place, {day, median, launches});
  if (days.size() > kDays) days.pop_front();
}

std::optional<Drift> History::DriftOf(const Key& key, uint32_t day) const {
  Key plain = key;
  plain.program = Plain(plain.program);
  plain.kernel.name = Plain(plain.kernel.name);
  auto found = kernels_.find(plain);
  if (found == kernels_.end()) return std::nullopt;
  Drift drift;
  std::vector<double> medians;
  for (const Day& one : found->second) {
    if (one.launches < kLeastLaunches) continue;
    if (one.day == day) drift.today = one.median;
    if (one.day < day) medians.push_back(one.median);
  }
  if (medians.empty() || drift.today == 0) return std::nullopt;
  std::ranges::sort(medians);
  drift.earlier = medians[medians.size() / 2];
  drift.days = static_cast<uint32_t>(medians.size());
  return drift;
}

std::vector<std::pair<History::Key, Drift>> History::Anomalies(uint32_t day) const {
  std::vector<std::pair<Key, Drift>> anomalies;
  for (const auto& [key, days] : kernels_) {
    if (days.empty() || days.back().day != day) continue;
    auto drift = DriftOf(key, day);
    if (drift && drift->is_anomaly()) anomalies.emplace_back(key, *drift);
  }
  return anomalies;
}

std::string History::Text() const {
  std::string text;
  for (const auto& [key, days] : kernels_) {
    const KernelKey& kernel = key.kernel;
    std::string of_kernel =
        "\t" + key.tenant + "\t" + key.program + "\t" + kernel.module + "\t" + kernel.name;
    for (uint32_t size : kernel.block) of_kernel += "\t" + std::to_string(size);
    of_kernel += "\t" + std::to_string(kernel.dynamic_shared) + "\t";
    for (const Day& day : days) {
      text += std::to_string(day.day) + of_kernel +
              std::to_string(static_cast<uint64_t>(std::llround(day.median))) + "\t" +
              std::to_string(day.launches) + "\n";
    }
  }
  return text;
}

bool History::Parse(const std::string& text, size_t* line) {
  size_t number = 0, wrong = 0;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = std::min(text.find('\n', begin), text.size());
    const std::vector<std::string> fields = FieldsOf(text.substr(begin, end - begin));
    begin = end + 1;
    ++number;
    Key key;
    Day day;
    bool good = fields.size() == 11 && Take(fields[0], &day.day) && Take(fields[9], &day.median) &&
                Take(fields[10], &day.launches) && Take(fields[8], &key.kernel.dynamic_shared);
    for (size_t i = 0; good && i < 3; ++i) good = Take(fields[5 + i], &key.kernel.block[i]);
    if (good && std::isfinite(day.median) && day.median >= 0) {
      key.tenant = fields[1];
      key.program = fields[2];
      key.kernel.module = fields[3];
      key.kernel.name = fields[4];
      Note(key, day.day, day.median, day.launches);
    } else if (wrong == 0) {
      wrong = number;
    }
  }
  *line = wrong;
  return wrong == 0;
}

}  // namespace longwire::statistics
