#include "cli/kernels/apply.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/reason.h"
#include "cli/kernels/programs.h"
#include "cli/text.h"
#include "server/config/config.h"
#include "server/config/yaml_tree.h"
#include "server/daemon/settings/paths.h"

namespace longwire::cli {
namespace {

using statistics::AdvisedRule;

constexpr int kContext = 3;  // lines of the file around what is new
constexpr size_t kModuleDigits = 64;

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::string Joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

// Whether a rule of the file says that already.
bool IsThere(const config::Config& config, const std::string& program, const AdvisedRule& rule) {
  return std::ranges::any_of(config.rules(), [&](const config::Rule& one) {
    const bool same =
        one.program() == program && one.module() == rule.module && one.kernel() == rule.kernel;
    if (rule.shared_memory != 0) return same && one.launch().has_shared_memory();
    return same && one.jit().has_registers();
  });
}

// A name that no rule of the file has.
std::string FreeName(const config::Config& config, size_t* number) {
  while (true) {
    const std::string name = "advised-" + std::to_string(++*number);
    const bool taken = std::ranges::any_of(
        config.rules(), [&](const config::Rule& one) { return one.name() == name; });
    if (!taken) return name;
  }
}

std::vector<std::string> RuleLines(const std::string& name, const std::string& program,
                                   const AdvisedRule& rule) {
  std::vector<std::string> lines = {"- name: " + name, "  program: " + JsonString(program),
                                    "  module: " + JsonString(rule.module)};
  if (!rule.kernel.empty()) lines.push_back("  kernel: " + JsonString(rule.kernel));
  if (rule.shared_memory != 0) {
    lines.push_back("  launch: {shared_memory: " + std::to_string(rule.shared_memory) + "}");
  }
  if (rule.registers != 0) {
    lines.push_back("  jit: {registers: " + std::to_string(rule.registers) + "}");
  }
  return lines;
}

// All new rules, at the margin.
std::vector<std::string> NewLines(const config::Config& config,
                                  const std::vector<ProgramAdvice>& programs, size_t* rules) {
  std::vector<std::string> lines;
  std::vector<std::string> seen;
  size_t number = 0;
  for (const ProgramAdvice& program : programs) {
    for (const statistics::Advice& advice : program.advice) {
      const AdvisedRule& rule = advice.rule;
      if (rule.empty() || rule.module.size() != kModuleDigits) continue;
      // Whatever its folder: the module's digest says which one is meant.
      const std::string name = LastPart(program.program);
      if (IsThere(config, name, rule)) continue;
      const std::string same = name + "\n" + rule.module + "\n" + rule.kernel;
      if (std::ranges::find(seen, same) != seen.end()) continue;
      seen.push_back(same);
      for (std::string& line : RuleLines(FreeName(config, &number), name, rule)) {
        lines.push_back(std::move(line));
      }
      ++*rules;
    }
  }
  return lines;
}

std::string DiffOf(const std::string& file, const std::vector<std::string>& before, size_t at,
                   size_t removed, const std::vector<std::string>& added) {
  const size_t first = at > kContext ? at - kContext : 0;
  const size_t last = std::min(before.size(), at + removed + kContext);
  char head[96];
  std::snprintf(head, sizeof(head), "@@ -%zu,%zu +%zu,%zu @@\n", first + 1, last - first, first + 1,
                last - first - removed + added.size());
  std::string diff = "--- " + file + "\n+++ " + file + "\n" + head;
  for (size_t i = first; i < at; ++i) diff += " " + before[i] + "\n";
  for (size_t i = at; i < at + removed; ++i) diff += "-" + before[i] + "\n";
  for (const std::string& line : added) diff += "+" + line + "\n";
  for (size_t i = at + removed; i < last; ++i) diff += " " + before[i] + "\n";
  return diff;
}

struct Place {
  size_t line = 0;     // new lines go before this one, from 0
  size_t removed = 0;  // lines that they replace
  size_t indent = 2;
  bool needs_key = true;  // there is no rules: yet
};

// False with a sentence.
bool FindPlace(const std::string& file, const std::string& text, size_t lines, Place* place,
               std::string* problem) {
  config::Problems problems;
  auto tree = config::ReadYaml(file, text, &problems);
  if (!tree || !problems.empty()) {
    *problem = file + " has mistakes: longwire config check shows them";
    return false;
  }
  place->line = lines;
  for (size_t i = 0; i < tree->keys.size(); ++i) {
    if (tree->keys[i].text != "rules") continue;
    const config::Node& list = tree->children[i];
    const auto key_line = static_cast<size_t>(tree->keys[i].place.line) - 1;
    place->needs_key = false;
    place->line = key_line + 1;
    if (list.children.empty()) {
      place->line = key_line;
      place->removed = 1;
      place->needs_key = true;
      return true;
    }
    const config::Place& first = list.children[0].place;
    const bool in_lines = static_cast<size_t>(first.line) > key_line + 1 && first.column >= 3 &&
                          LinesOf(text)[static_cast<size_t>(first.line) - 1].find("- ") ==
                              static_cast<size_t>(first.column) - 3;
    if (in_lines) {
      place->line = static_cast<size_t>(first.line) - 1;
      place->indent = static_cast<size_t>(first.column) - 3;
      return true;
    }
    *problem = file +
               ": write the list rules: with a line for each rule that begins with '- '; "
               "as it stands nothing can be put before its first rule";
    return false;
  }
  return true;
}

bool ReadText(const std::string& file, std::string* text) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return false;
  std::ostringstream all;
  all << in.rdbuf();
  *text = all.str();
  return in.good() || in.eof();
}

// False with the first mistake.
bool IsRight(const std::string& file, std::string* problem) {
  config::Draft draft;
  config::Problems problems;
  config::ReadFile(file, &draft, &problems);
  config::FillDefaults(daemon::RuntimeDirectory(), &draft.config);
  config::Check(draft, &problems);
  if (problems.empty()) return true;
  *problem = problems.Sentences().front();
  return false;
}

}  // namespace

// Before the others: of two rules that say the same the later one counts, and theirs were written
// by hand.
Edit AddRulesTo(const std::string& file, const std::string& text,
                const std::vector<ProgramAdvice>& programs) {
  Edit edit;
  config::Draft draft;
  config::Problems problems;
  config::ReadText(file, text, &draft, &problems);
  const std::vector<std::string> before = LinesOf(text);
  Place place;
  if (!FindPlace(file, text, before.size(), &place, &edit.problem)) return edit;
  std::vector<std::string> added;
  if (place.needs_key) added.emplace_back("rules:");
  for (const std::string& line : NewLines(draft.config, programs, &edit.rules)) {
    added.push_back(std::string(place.indent, ' ') + line);
  }
  if (edit.rules == 0) {
    edit.problem = "nothing applies: no advice is one that a new rule could carry out";
    return edit;
  }
  edit.diff = DiffOf(file, before, place.line, place.removed, added);
  std::vector<std::string> after = before;
  const auto at = after.begin() + static_cast<ptrdiff_t>(place.line);
  after.insert(after.erase(at, at + static_cast<ptrdiff_t>(place.removed)), added.begin(),
               added.end());
  edit.text = Joined(after);
  return edit;
}

bool Apply(const std::string& file, const std::vector<ProgramAdvice>& programs, std::string* said) {
  std::string text;
  if (!ReadText(file, &text)) {
    *said = file + " cannot be read: " + base::Reason(errno);
    return false;
  }
  const Edit edit = AddRulesTo(file, text, programs);
  *said = edit.problem;
  if (!edit.problem.empty()) return false;
  const std::string next = file + ".new";
  std::error_code error;
  std::filesystem::copy_file(file, next, std::filesystem::copy_options::overwrite_existing, error);
  std::ofstream out(next, std::ios::binary | std::ios::trunc);
  out << edit.text;
  out.close();
  std::string problem = base::Reason(errno);
  const bool written = !error && out.good();
  if (written && IsRight(next, &problem) && std::rename(next.c_str(), file.c_str()) == 0) {
    *said = edit.diff + file + ": " + std::to_string(edit.rules) +
            (edit.rules == 1 ? " rule was" : " rules were") +
            " added; longwire admin reload puts them in force";
    return true;
  }
  std::filesystem::remove(next, error);
  *said = file + " stays as it was: " + problem;
  return false;
}

}  // namespace longwire::cli
