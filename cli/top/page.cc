// The page that a View shows.
#include <algorithm>

#include "base/printable.h"
#include "cli/top/sections.h"
#include "cli/top/table.h"
#include "cli/top/view.h"

namespace longwire::cli::top {
namespace {

// Devices and tenants have at most this many rows each, and a quarter of the page.
constexpr int kRowLimit = 8;

int RowsFor(size_t rows, int height) {
  return std::min({static_cast<int>(rows), std::max(1, height / 6), kRowLimit});
}

// The titles and the first rows; a line says how many more there are.
void AddSection(const std::vector<std::string>& lines, int rows, std::vector<Line>* page) {
  page->push_back({lines[0], Style::kTitles});
  const auto all = static_cast<int>(lines.size()) - 1;
  const int shown = all > rows ? rows - 1 : all;
  for (int row = 0; row < shown; ++row) page->push_back({lines[static_cast<size_t>(row) + 1]});
  if (all > shown) page->push_back({"  and " + std::to_string(all - shown) + " more"});
}

}  // namespace

std::vector<Line> View::HelpPage() const {
  std::vector<Line> page = {{"longwire top: the keys", Style::kHead}, {}};
  for (const char* line :
       {"up, down, page up, page down, home, end   select a session",
        "left, right (or < and >)                  sort sessions by another column",
        "r                                         reverse the order",
        "/                                         filter sessions by a text; escape: show all",
        "k                                         kill the selected session (asks first)",
        "d                                         drain the server, or take that back (asks)",
        "c                                         cordon a device, or take that back",
        "q, ctrl-c                                 quit", "",
        "BUSY: of the last two seconds. GPU%: 100% is a second of GPU time per second.",
        "SHARE: of the GPU time in the last minute; DUE: by the tenants' weights.",
        "WAIT: sessions with work behind a closed gate; HELD BACK BY: who works there.",
        "GATE: open; shut: closed, nothing waits; HELD: closed, work waits; stop: no answer.",
        "CLOCK: of the multiprocessors. STATE: slowed: by heat or power; Xid: an error of it.",
        "n/a: NVIDIA's management library (NVML) does not tell it of this device.", "",
        "any key: back"}) {
    page.push_back({line});
  }
  return page;
}

Line View::Foot() const {
  switch (mode_) {
    case Mode::kFilter:
      return {"filter: " + typed_ + "_", Style::kFoot};
    case Mode::kDevice:
      return {"cordon which device, or take that back? " + typed_ + "_", Style::kFoot};
    case Mode::kQuestion:
      return {question_.text, Style::kAlarm};
    default:
      break;
  }
  if (!said_.empty()) return {said_, Style::kFoot};
  const std::string filter = filter_.empty() ? "" : "filter '" + filter_ + "'  ";
  return {filter + "q quit  ? help  / filter  < > sort  r reverse  k kill  d drain  c cordon",
          Style::kFoot};
}

void View::AddSessions(int width, int rows, std::vector<Line>* page) {
  const std::vector<std::string> lines = SessionLines(shown_, width, sorted_, reversed_);
  page->push_back({lines[0], Style::kTitles});
  const size_t all = shown_.sessions.size();
  page_rows_ = static_cast<size_t>(std::max(1, rows - 1));
  if (place_ < first_) first_ = place_;
  if (place_ >= first_ + page_rows_) first_ = place_ + 1 - page_rows_;
  first_ = std::min(first_, all > page_rows_ ? all - page_rows_ : 0);
  for (size_t row = first_; row < std::min(all, first_ + page_rows_); ++row) {
    page->push_back({lines[row + 1], row == place_ ? Style::kSelected : Style::kPlain});
  }
  if (all == 0) page->push_back({all_.sessions.empty() ? "no sessions" : "none fits the filter"});
}

void View::AddTables(int width, int height, std::vector<Line>* page) {
  AddSection(DeviceLines(shown_, width), RowsFor(shown_.devices.size(), height), page);
  AddSection(TenantLines(shown_, width), RowsFor(shown_.tenants.size(), height), page);
  AddSessions(width, height - static_cast<int>(page->size()) - 1, page);
}

std::vector<Line> View::Page(int width, int height) {
  std::vector<Line> page;
  if (mode_ == Mode::kHelp) {
    page = HelpPage();
  } else {
    page.push_back({known_ ? HeadLine(shown_) : "longwire top", Style::kHead});
    const std::string alarm = problem_.empty()
                                  ? AlarmLine(shown_)
                                  : "no answer, these figures are old; trying again: " + problem_;
    page.push_back({alarm, Style::kAlarm});
    if (known_) AddTables(width, height, &page);
  }
  const auto rows = static_cast<size_t>(std::max(1, height));
  page.resize(rows - 1);
  page.push_back(Foot());
  for (Line& line : page) line.text = Fit(line.text, width);
  return page;
}

}  // namespace longwire::cli::top
