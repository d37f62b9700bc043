// Tables of text for a terminal of any width.
#pragma once

#include <string>
#include <vector>

namespace longwire::cli::top {

// Columns of a terminal that the text takes; it has no control characters.
int Width(const std::string& text);
// The text, exactly `width` columns wide: cut, or with blanks behind it (before it if `right`).
// Characters that must not be shown are '?' (base/printable.h).
std::string Fit(const std::string& text, int width, bool right = false);

class Table {
 public:
  struct Column {
    std::string title;
    int least = 1;       // of its width; it may get as much as its texts need
    bool right = false;  // figures, which are never cut
    int rank = 0;        // where not all fit, the last one with the highest goes first
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  // A text for each column.
  void Add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }

  // The line of titles, then a line for each row, each `width` columns wide; 0: as wide as needed.
  std::vector<std::string> Lines(int width) const;

 private:
  // For each column; 0: it is left out.
  std::vector<int> Widths(int width) const;
  std::string Line(const std::vector<std::string>& texts, const std::vector<int>& widths) const;

  const std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace longwire::cli::top
