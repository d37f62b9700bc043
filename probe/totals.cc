#include "probe/totals.h"

#include <algorithm>
#include <cstring>

#include "base/printable.h"
#include "probe/helpers.h"
#include "probe/include/longwire/probe.h"

namespace longwire::probe {

namespace {

constexpr size_t kBar = 40;
constexpr size_t kShownKeys = 256;  // of an array
constexpr size_t kShown = 20;       // records of a ring

std::string Padded(const std::string& text, size_t width) {
  return text.size() < width ? std::string(width - text.size(), ' ') + text : text;
}

std::string Bar(uint64_t count, uint64_t most) {
  const auto length = static_cast<size_t>(static_cast<double>(count) / static_cast<double>(most) *
                                          static_cast<double>(kBar));
  return std::string(std::max<size_t>(length, count > 0 ? 1 : 0), '#');
}

std::string Line(const std::string& what, uint64_t count, uint64_t most) {
  const std::string bar = Bar(count, most);
  return Padded(what, 28) + Padded(std::to_string(count), 14) + (bar.empty() ? "" : "  " + bar) +
         "\n";
}

// "1K - 2K": the values of a bucket, whose number is how many bits they have.
std::string Range(size_t bucket) {
  if (bucket == 0) return "0";
  const auto text = [](size_t bits) {
    constexpr const char* kUnits[] = {"", "K", "M", "G", "T", "P", "E"};
    return std::to_string(uint64_t{1} << bits % 10) + kUnits[bits / 10];
  };
  return text(bucket - 1) + " to " + text(bucket);
}

uint64_t ValueAt(const void* contents, size_t index) {
  uint64_t value = 0;
  std::memcpy(&value, static_cast<const char*>(contents) + index * sizeof(value), sizeof(value));
  return value;
}

}  // namespace

std::string HistogramText(const std::vector<uint64_t>& buckets) {
  const auto is_set = [](uint64_t count) { return count != 0; };
  const auto first = std::ranges::find_if(buckets, is_set);
  if (first == buckets.end()) return Padded("nothing", 28) + "\n";
  size_t last = buckets.size() - 1;
  while (buckets[last] == 0) --last;
  const uint64_t most = std::ranges::max(buckets);
  std::string text;
  for (auto i = static_cast<size_t>(first - buckets.begin()); i <= last; ++i) {
    text += Line(Range(i), buckets[i], most);
  }
  return text;
}

Totals::Totals(std::vector<policy::MapShape> maps) : maps_(std::move(maps)), totals_(maps_.size()) {
  for (size_t i = 0; i < maps_.size(); ++i) {
    if (HasRecords(maps_[i])) continue;
    totals_[i].values.resize(maps_[i].type == LW_HISTOGRAM ? kBuckets : maps_[i].entries);
  }
}

void Totals::Add(size_t map, const void* contents) {
  const policy::MapShape& shape = maps_[map];
  Total& total = totals_[map];
  if (!HasRecords(shape)) {
    const size_t count = BytesOf(shape) / sizeof(uint64_t);
    for (size_t i = 0; i < count; ++i) {
      total.values[i % total.values.size()] += ValueAt(contents, i);
    }
    return;
  }
  const uint64_t put = ValueAt(contents, 0);
  total.put += put;
  constexpr size_t kValues = kRecordBytes / sizeof(uint64_t);
  for (uint64_t i = 0; i < std::min<uint64_t>(put, shape.entries); ++i) {
    if (total.records.size() == shape.entries) return;
    Record record;
    for (size_t j = 0; j < kValues; ++j) record[j] = ValueAt(contents, (i + 1) * kValues + j);
    total.records.push_back(record);
  }
}

std::string Totals::ArrayText(const Total& total) const {
  const uint64_t most = std::max<uint64_t>(std::ranges::max(total.values), 1);
  std::string text;
  size_t shown = 0, set = 0;
  for (size_t i = 0; i < total.values.size(); ++i) {
    if (total.values[i] == 0) continue;
    ++set;
    if (set > kShownKeys) continue;
    ++shown;
    text += Line(std::to_string(i), total.values[i], most);
  }
  if (set == 0) return Padded("nothing", 28) + "\n";
  if (set > shown) text += Padded("and " + std::to_string(set - shown) + " more keys", 28) + "\n";
  return text;
}

const std::string* Totals::KernelOf(uint64_t hash) const {
  if (hash > UINT32_MAX) return nullptr;
  const auto found = kernels_.find(static_cast<uint32_t>(hash));
  return found == kernels_.end() ? nullptr : &found->second;
}

// `spans`: when they ended and how long they took, for that is what one looks for.
std::string Totals::RingText(const Total& total, bool spans) const {
  if (total.put == 0) return Padded("nothing", 28) + "\n";
  std::string text;
  for (size_t i = 0; i < std::min(kShown, total.records.size()); ++i) {
    Record record = total.records[i];
    if (spans) record = {record[0], record[1], record[3], record[3] - record[2]};
    const std::string* kernel = KernelOf(record[0]);
    text += "  " + (kernel == nullptr ? std::to_string(record[0]) : base::Printable(*kernel));
    for (size_t j = 1; j < record.size(); ++j) text += "  " + std::to_string(record[j]);
    text += "\n";
  }
  text += "  " + std::to_string(total.put) + " records, " +
          std::to_string(std::min(kShown, total.records.size())) + " shown, " +
          std::to_string(total.put - total.records.size()) + " lost because the map was full\n";
  return text;
}

std::string Totals::Text() const {
  std::string text;
  for (size_t i = 0; i < maps_.size(); ++i) {
    std::string title = maps_[i].name;
    std::ranges::replace(title, '_', ' ');
    text += title + "\n";
    if (HasRecords(maps_[i])) {
      text += RingText(totals_[i], maps_[i].type == LW_SPANS);
    } else {
      text +=
          maps_[i].type == LW_HISTOGRAM ? HistogramText(totals_[i].values) : ArrayText(totals_[i]);
    }
  }
  return text;
}

}  // namespace longwire::probe
