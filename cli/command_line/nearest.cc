#include <algorithm>
#include <numeric>
#include <optional>

#include "cli/command_line/command_line.h"

namespace longwire::cli {
namespace {

// How many letters have to be added, left out, changed or exchanged with their neighbour
// (Damerau and Levenshtein's distance, each letter exchanged once at most).
size_t Distance(const std::string& one, const std::string& other) {
  std::vector<std::vector<size_t>> rows(one.size() + 1, std::vector<size_t>(other.size() + 1));
  std::iota(rows[0].begin(), rows[0].end(), 0);
  for (size_t i = 1; i <= one.size(); ++i) {
    rows[i][0] = i;
    for (size_t j = 1; j <= other.size(); ++j) {
      const size_t changed = one[i - 1] == other[j - 1] ? 0 : 1;
      rows[i][j] = std::min({rows[i - 1][j] + 1, rows[i][j - 1] + 1, rows[i - 1][j - 1] + changed});
      const bool exchanged =
          i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1];
      if (exchanged) rows[i][j] = std::min(rows[i][j], rows[i - 2][j - 2] + 1);
    }
  }
  return rows[one.size()][other.size()];
}

}  // namespace

std::string Nearest(const std::string& word, const std::vector<std::string>& known) {
  constexpr size_t kLongestWord = 64;
  if (word.size() > kLongestWord) return "";
  std::string nearest;
  size_t least = word.starts_with("--") ? (word.size() - 2) / 3 + 1 : word.size() / 3 + 1;
  for (const std::string& one : known) {
    const bool begins = word.size() > 2 && !word.ends_with('-') && one.starts_with(word);
    const size_t distance = begins ? 0 : Distance(word, one);
    if (distance >= least + (nearest.empty() ? 1 : 0)) continue;
    least = distance;
    nearest = one;
  }
  return nearest;
}

}  // namespace longwire::cli
