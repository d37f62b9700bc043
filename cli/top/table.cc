#include "cli/top/table.h"

#include <wchar.h>

#include <algorithm>
#include <numeric>

#include "base/printable.h"

namespace longwire::cli::top {
namespace {

// Of one character that may be shown; what this locale cannot show takes none.
int WidthOf(const base::Character& character) {
  return std::max(0, wcwidth(static_cast<wchar_t>(character.code)));
}

}  // namespace

int Width(const std::string& text) {
  int width = 0;
  for (std::string_view rest = text; !rest.empty();) {
    const base::Character character = base::FirstCharacter(rest);
    width += character.valid ? WidthOf(character) : 1;
    rest.remove_prefix(character.bytes);
  }
  return width;
}

std::string Fit(const std::string& text, int width, bool right) {
  const std::string shown = base::Printable(text);
  std::string fitting;
  int used = 0;
  for (std::string_view rest = shown; !rest.empty();) {
    const base::Character character = base::FirstCharacter(rest);
    const int own = WidthOf(character);
    if (used + own > width) break;
    used += own;
    fitting.append(rest.substr(0, character.bytes));
    rest.remove_prefix(character.bytes);
  }
  const std::string blanks(static_cast<size_t>(std::max(0, width - used)), ' ');
  return right ? blanks + fitting : fitting + blanks;
}

std::vector<int> Table::Widths(int width) const {
  std::vector<int> wanted(columns_.size()), widths(columns_.size());
  for (size_t i = 0; i < columns_.size(); ++i) {
    const int least = wanted[i] = std::max(columns_[i].least, Width(columns_[i].title));
    for (const auto& row : rows_) {
      wanted[i] = std::max(wanted[i], Width(base::Printable(row[i])));
    }
    widths[i] = columns_[i].right ? wanted[i] : least;  // a figure that is cut is another figure
  }
  if (width == 0) return wanted;
  auto taken = [&] {
    const auto shown = static_cast<int>(std::ranges::count_if(widths, [](int w) { return w > 0; }));
    return std::accumulate(widths.begin(), widths.end(), 0) + std::max(0, shown - 1);
  };
  while (taken() > width) {
    size_t last = widths.size();
    for (size_t i = 0; i < widths.size(); ++i) {
      if (widths[i] == 0) continue;
      if (last == widths.size() || columns_[i].rank >= columns_[last].rank) last = i;
    }
    if (last == widths.size()) break;
    widths[last] = 0;
  }
  // What is left goes to those that need more, a column of the terminal at a time.
  for (bool grown = true; grown && taken() < width;) {
    grown = false;
    for (size_t i = 0; i < widths.size() && taken() < width; ++i) {
      if (widths[i] == 0 || widths[i] >= wanted[i]) continue;
      ++widths[i];
      grown = true;
    }
  }
  return widths;
}

std::string Table::Line(const std::vector<std::string>& texts,
                        const std::vector<int>& widths) const {
  std::string line;
  bool first = true;
  for (size_t i = 0; i < texts.size(); ++i) {
    if (widths[i] == 0) continue;
    line += (first ? "" : " ") + Fit(texts[i], widths[i], columns_[i].right);
    first = false;
  }
  return line;
}

std::vector<std::string> Table::Lines(int width) const {
  const std::vector<int> widths = Widths(width);
  std::vector<std::string> titles, lines;
  for (const Column& column : columns_) titles.push_back(column.title);
  lines.push_back(Line(titles, widths));
  for (const auto& row : rows_) lines.push_back(Line(row, widths));
  for (std::string& line : lines) {
    if (width != 0) line = Fit(line, width);
  }
  return lines;
}

}  // namespace longwire::cli::top
