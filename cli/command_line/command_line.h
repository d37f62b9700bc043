// longwire's command line. Each command is described once; that gives its parsing, its help, its
// part of the completion for shells, and by its help its manual page (help2man).
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace longwire::cli {

using Arguments = std::vector<std::string>;

inline constexpr int kUsageStatus = 2;  // of wrong use

// Where the words of a program begin, which are no options of ours.
enum class ProgramBegins { kAtFirstWord, kBehindDashes };

class CommandLine {
 public:
  CommandLine();

  // A command of longwire, or with `parent` one below it. `about`: half a sentence for its line in
  // lists. `body` returns the exit status; a command that has others below it needs none.
  CLI::App& Add(CLI::App* parent, const std::string& name, const std::string& about,
                std::function<int()> body = {});
  // The rest of the line goes into `words`.
  void TakesProgram(CLI::App& command, ProgramBegins begins, Arguments* words);

  // What longwire --help says at its end.
  void Close(const std::string& footer) { app_.footer(footer); }
  // Parses, and does what the words say. Wrong use: one sentence on standard error and status 2.
  int Run(const Arguments& words);

  const CLI::App& app() const { return app_; }

 private:
  struct Program {
    ProgramBegins begins;
    Arguments* words;
  };
  // The words before a program, values apart from their options; the program's go to its command.
  Arguments TakeProgram(const Arguments& words);
  int RunParsed();
  int Refuse(const CLI::ParseError& error);

  CLI::App app_;
  std::map<const CLI::App*, std::function<int()>> bodies_;
  std::map<const CLI::App*, Program> programs_;
};

// "longwire cert init".
std::string PathOf(const CLI::App& command);
// What --help prints.
std::string HelpOf(const CLI::App& command);

// Commands and options by what they are called; those that --help does not show are left out.
std::vector<const CLI::App*> CommandsOf(const CLI::App& command);
std::vector<const CLI::Option*> OptionsOf(const CLI::App& command);
bool TakesValue(const CLI::Option& option);
// All names with their dashes, the longest first.
std::vector<std::string> NamesOf(const CLI::Option& option);

// An option whose value is a whole number from `least` to `most`.
CLI::Option& AddNumber(CLI::App& command, const std::string& name, int least, int most, int* value,
                       const std::string& help);
// Ends the parsing with this sentence, which begins with the option's name.
[[noreturn]] void RefuseValue(const std::string& sentence);

// Of `known` the one that `word` is most likely to mean; empty if none is near.
std::string Nearest(const std::string& word, const std::vector<std::string>& known);

// A script by which the shell completes longwire's command line; empty: no such shell.
std::string CompletionFor(const std::string& shell, const CLI::App& app);

}  // namespace longwire::cli
