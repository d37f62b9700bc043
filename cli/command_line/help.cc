// What a command's --help prints: its path and what it does, how it is called, its commands and
// options, and what the command says of itself beside that.
#include <algorithm>
#include <sstream>

#include "cli/command_line/command_line.h"

namespace longwire::cli {
namespace {

constexpr size_t kWidth = 100;
constexpr size_t kColumn = 26;  // where the explanations begin

// The text in lines of the width, its first one behind `begins`, the others behind spaces.
std::string Wrapped(const std::string& begins, size_t column, const std::string& text) {
  std::string lines, line = begins;
  if (!line.empty() && line.size() + 2 > column) {
    lines = line + "\n";
    line.clear();
  }
  line.resize(std::max(line.size(), column), ' ');
  std::istringstream words(text);
  bool first = true;
  for (std::string word; words >> word; first = false) {
    if (!first && line.size() + 1 + word.size() > kWidth) {
      lines += line + "\n";
      line = std::string(column, ' ') + word;
    } else {
      line += (first ? "" : " ") + word;
    }
  }
  return lines + line + "\n";
}

std::string OptionsText(const CLI::Option& option) {
  std::string names;
  for (const std::string& name : NamesOf(option)) names += (names.empty() ? "" : ", ") + name;
  return "  " + names + (TakesValue(option) ? " " + option.get_type_name() : "");
}

std::string Usage(const CLI::App& command) {
  const std::vector<const CLI::App*> commands = CommandsOf(command);
  std::string usage = "  " + PathOf(command);
  if (!commands.empty()) return usage + " COMMAND\n";
  if (!OptionsOf(command).empty()) usage += " [OPTIONS]";
  for (const CLI::Option* option : command.get_options(nullptr)) {
    if (!option->get_positional()) continue;
    usage += option->get_required() ? " " + option->get_single_name()
                                    : " [" + option->get_single_name() + "]";
  }
  return usage + "\n";
}

// Paragraphs, and lines that begin with a space as they are.
std::string Paragraphs(const std::string& text) {
  std::string made, paragraph;
  auto end = [&] {
    if (!paragraph.empty()) made += Wrapped("", 0, paragraph);
    paragraph.clear();
  };
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const bool verbatim = line.empty() || line.starts_with(' ');
    if (verbatim) end();
    if (verbatim) made += line + "\n";
    if (!verbatim) paragraph += line + "\n";
  }
  end();
  return made;
}

}  // namespace

std::string PathOf(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  return (parent == nullptr ? "" : PathOf(*parent) + " ") + command.get_name();
}

bool TakesValue(const CLI::Option& option) { return option.get_expected_max() > 0; }

std::vector<std::string> NamesOf(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  return names;
}

std::vector<const CLI::App*> CommandsOf(const CLI::App& command) {
  std::vector<const CLI::App*> all =
      command.get_subcommands([](const CLI::App* one) { return !one->get_group().empty(); });
  return all;
}

std::vector<const CLI::Option*> OptionsOf(const CLI::App& command) {
  return command.get_options(
      [](const CLI::Option* one) { return !one->get_positional() && !one->get_group().empty(); });
}

std::string HelpOf(const CLI::App& command) {
  std::string help = Wrapped("", 0, PathOf(command) + ": " + command.get_description());
  help += "\nUsage:\n" + Usage(command);
  const std::vector<const CLI::App*> commands = CommandsOf(command);
  if (!commands.empty()) help += "\nCommands:\n";
  for (const CLI::App* one : commands) {
    help += Wrapped("  " + one->get_name(), kColumn, one->get_description());
  }
  std::string words;
  for (const CLI::Option* option : command.get_options(nullptr)) {
    if (option->get_positional()) {
      words += Wrapped("  " + option->get_single_name(), kColumn, option->get_description());
    }
  }
  if (!words.empty()) help += "\n" + words;
  help += "\nOptions:\n";
  for (const CLI::Option* option : OptionsOf(command)) {
    help += Wrapped(OptionsText(*option), kColumn, option->get_description());
  }
  if (!command.get_footer().empty()) help += "\n" + Paragraphs(command.get_footer());
  return help;
}

}  // namespace longwire::cli
