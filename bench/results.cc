#include "bench/results.h"

#include <charconv>
#include <sstream>

namespace longwire::bench {
namespace {

constexpr size_t kFactLines = 4;

enum class TableKind { kNone, kFigures, kPrograms };

std::vector<std::string> WordsOf(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

std::optional<double> NumberOf(const std::string& word) {
  double value = 0;
  auto [end, problem] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (problem != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return value;
}

// "figure  native  longwire unit  longwire/native", "apps: program  native s  remote s".
TableKind KindOf(const std::vector<std::string>& words) {
  if (words.size() >= 4 && words[0] == "figure" && words[1] == "native" && words[2] == "longwire" &&
      words[3] == "unit") {
    return TableKind::kFigures;
  }
  const bool programs = words.size() >= 6 && words[1] == "program" && words[2] == "native" &&
                        words[3] == "s" && words[4] == "remote" && words[5] == "s";
  return programs ? TableKind::kPrograms : TableKind::kNone;
}

// nullopt: the table is over.
std::optional<cli::BenchRow> RowOf(TableKind kind, const std::vector<std::string>& words) {
  auto is_cell = [](const std::string& word) { return word == "-" || NumberOf(word); };
  if (words.size() < 4 || words[0].ends_with(':') || !is_cell(words[1]) || !is_cell(words[2])) {
    return std::nullopt;
  }
  cli::BenchRow row{words[0],
                    kind == TableKind::kFigures ? words[3] : "s",
                    NumberOf(words[1]),
                    NumberOf(words[2]),
                    {},
                    {}};
  if (!row.native && !row.remote) return std::nullopt;
  // What did not do the same cannot be compared.
  if (kind == TableKind::kPrograms && words[3] != "equal") row.remote.reset();
  return row;
}

}  // namespace

cli::BenchGroup ReadResults(const std::string& title, const std::string& text) {
  cli::BenchGroup group;
  group.title = title;
  group.raw = text;
  TableKind kind = TableKind::kNone;
  bool began = false;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::vector<std::string> words = WordsOf(line);
    const TableKind next = KindOf(words);
    if (next != TableKind::kNone) {
      kind = next;
      began = true;
      continue;
    }
    if (!began && !words.empty() && group.facts.size() < kFactLines) group.facts.push_back(line);
    if (kind == TableKind::kNone) continue;
    auto row = RowOf(kind, words);
    if (row) group.rows.push_back(std::move(*row));
    if (!row) kind = TableKind::kNone;
  }
  // Without a table nothing says where the facts end.
  if (!began) group.facts.resize(std::min<size_t>(group.facts.size(), 1));
  return group;
}

}  // namespace longwire::bench
