#include "cli/top/pool_view.h"

#include <algorithm>

#include "cli/top/pool_lines.h"
#include "cli/top/table.h"

namespace longwire::cli::top {

void PoolView::SetPool(transport::PoolFigures pool) {
  pool_ = std::move(pool);
  known_ = true;
  problem_.clear();
}

void PoolView::Press(Key key, const std::string& text) {
  switch (key) {
    case Key::kUp:
      --first_;
      return;
    case Key::kDown:
      ++first_;
      return;
    case Key::kPageUp:
      first_ -= rows_;
      return;
    case Key::kPageDown:
      first_ += rows_;
      return;
    case Key::kHome:
      first_ = 0;
      return;
    case Key::kEnd:
      first_ = INT32_MAX - rows_;
      return;
    default:
      quit_ |= key == Key::kInterrupt || (key == Key::kText && text == "q");
  }
}

std::vector<Line> PoolView::Body(int width) const {
  std::vector<Line> body;
  const auto add = [&](const std::vector<std::string>& lines) {
    for (const std::string& line : lines) {
      body.push_back({line, &line == &lines.front() ? Style::kTitles : Style::kPlain});
    }
  };
  add(HostLines(pool_, width));
  body.emplace_back();
  if (pool_.waiting_size() != 0) {
    add(QueueLines(pool_, width));
  } else {
    body.push_back({"nobody waits"});
  }
  return body;
}

std::vector<Line> PoolView::Page(int width, int height) {
  std::vector<Line> page;
  page.push_back({known_ ? PoolHeadLine(pool_) : "longwire top --pool", Style::kHead});
  page.push_back({problem_.empty() ? PoolAlarmLine(pool_)
                                   : "no answer, these figures are old; trying again: " + problem_,
                  Style::kAlarm});
  if (!known_) page.back().text = problem_;
  rows_ = std::max(1, height - static_cast<int>(page.size()) - 1);
  const std::vector<Line> body = known_ ? Body(width) : std::vector<Line>();
  first_ = std::clamp(first_, 0, std::max(0, static_cast<int>(body.size()) - rows_));
  const auto end = std::min(body.size(), static_cast<size_t>(first_ + rows_));
  page.insert(page.end(), body.begin() + first_, body.begin() + static_cast<ptrdiff_t>(end));
  page.resize(static_cast<size_t>(std::max(1, height)) - 1);
  page.push_back({"q quit  up, down, page up, page down, home, end: scroll", Style::kFoot});
  for (Line& line : page) line.text = Fit(line.text, width);
  return page;
}

}  // namespace longwire::cli::top
