#include "cli/command_line/command_line.h"

#include <algorithm>
#include <cstdio>

#include "wire/number.h"

namespace longwire::cli {
namespace {

constexpr const char* kDashes = "--";

// The option that the word begins with, and where its value stands if it has one behind "=".
const CLI::Option* OptionOf(const CLI::App& command, const std::string& word, size_t* equals) {
  *equals = word.find('=');
  return command.get_option_no_throw(word.substr(0, *equals));
}

const CLI::App& Deepest(const CLI::App& app) {
  const CLI::App* at = &app;
  while (!at->get_subcommands().empty()) at = at->get_subcommands().front();
  return *at;
}

std::string List(const std::vector<const CLI::App*>& commands) {
  std::string list;
  for (size_t i = 0; i < commands.size(); ++i) {
    list += (i == 0 ? "" : i + 1 == commands.size() ? " or " : ", ") + commands[i]->get_name();
  }
  return list;
}

int Complain(const CLI::App& command, const std::string& sentence) {
  const std::string path = PathOf(command);
  // A sentence that ends, or one that goes on.
  const bool ended = sentence.ends_with('.') || sentence.ends_with('?');
  std::fprintf(stderr, "%s: %s%s %s --help\n", path.c_str(), sentence.c_str(),
               ended ? " See" : "; see", path.c_str());
  return kUsageStatus;
}

std::string Suggestion(const std::string& word, const std::vector<std::string>& known) {
  const std::string nearest = Nearest(word, known);
  return nearest.empty() ? "" : "; did you mean '" + nearest + "'?";
}

std::string Unexpected(const CLI::App& command, const std::string& word) {
  std::vector<std::string> known;
  const std::vector<const CLI::App*> commands = CommandsOf(command);
  if (!word.starts_with("-") && !commands.empty()) {
    for (const CLI::App* one : commands) known.push_back(one->get_name());
    const std::string suggestion = Suggestion(word, known);
    const bool first = command.get_parent() == nullptr;
    return (first ? "there is no command '" : "unknown command '") + word + "'" +
           (suggestion.empty() && !first ? "." : suggestion);
  }
  if (!word.starts_with("-")) return "unexpected '" + word + "'.";
  for (const CLI::Option* option : OptionsOf(command)) {
    for (const std::string& name : NamesOf(*option)) known.push_back(name);
  }
  const std::string name = word.substr(0, word.find('='));
  const std::string suggestion = Suggestion(name, known);
  return "unknown option '" + word + "'" + (suggestion.empty() ? "." : suggestion);
}

}  // namespace

CommandLine::CommandLine() : app_("CUDA devices of another host for programs on this one") {
  app_.name("longwire");
  app_.require_subcommand(0, 1);
  app_.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app_.set_help_flag("-h,--help", "print this help");
  app_.set_version_flag("--version", "longwire " LONGWIRE_VERSION, "print the version");
  app_.formatter_fn(
      [](const CLI::App* app, const std::string&, CLI::AppFormatMode) { return HelpOf(*app); });
}

CLI::App& CommandLine::Add(CLI::App* parent, const std::string& name, const std::string& about,
                           std::function<int()> body) {
  CLI::App* command = (parent == nullptr ? &app_ : parent)->add_subcommand(name, about);
  command->require_subcommand(0, 1);
  bodies_[command] = std::move(body);
  return *command;
}

void CommandLine::TakesProgram(CLI::App& command, ProgramBegins begins, Arguments* words) {
  programs_[&command] = {begins, words};
}

Arguments CommandLine::TakeProgram(const Arguments& words) {
  Arguments ours;
  const CLI::App* at = &app_;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    auto program = programs_.find(at);
    const bool takes = program != programs_.end();
    size_t equals = 0;
    if (takes && word == kDashes) {
      program->second.words->assign(words.begin() + static_cast<ptrdiff_t>(i) + 1, words.end());
      return ours;
    }
    if (word.starts_with("-")) {
      const CLI::Option* option = OptionOf(*at, word, &equals);
      const bool value = option != nullptr && TakesValue(*option);
      ours.push_back(value ? word.substr(0, equals) : word);
      if (value && equals != std::string::npos) ours.push_back(word.substr(equals + 1));
      const bool follows = value && equals == std::string::npos && i + 1 < words.size();
      if (follows && (!takes || words[i + 1] != kDashes)) ours.push_back(words[++i]);
      continue;
    }
    if (takes && program->second.begins == ProgramBegins::kAtFirstWord) {
      program->second.words->assign(words.begin() + static_cast<ptrdiff_t>(i), words.end());
      return ours;
    }
    ours.push_back(word);
    for (const CLI::App* next : CommandsOf(*at)) {
      if (next->get_name() == word) at = next;
    }
  }
  return ours;
}

int CommandLine::Run(const Arguments& words) {
  if (words.empty()) {
    std::fputs(HelpOf(app_).c_str(), stdout);
    return kUsageStatus;
  }
  Arguments ours = TakeProgram(words);
  std::reverse(ours.begin(), ours.end());
  try {
    app_.parse(std::move(ours));
    return RunParsed();
  } catch (const CLI::CallForHelp&) {
    std::fputs(HelpOf(Deepest(app_)).c_str(), stdout);
    return 0;
  } catch (const CLI::CallForVersion&) {
    std::puts("longwire " LONGWIRE_VERSION);
    return 0;
  } catch (const CLI::ParseError& error) {
    return Refuse(error);
  }
}

int CommandLine::RunParsed() {
  const CLI::App& command = Deepest(app_);
  auto body = bodies_.find(&command);
  if (body != bodies_.end() && body->second) return body->second();
  return Complain(command, List(CommandsOf(command)) + "?");
}

int CommandLine::Refuse(const CLI::ParseError& error) {
  const CLI::App& command = Deepest(app_);
  const std::string what = error.what();
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    const Arguments left = app_.remaining(true);
    return Complain(command, Unexpected(command, left.empty() ? "" : left.front()));
  }
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    return Complain(command, what.substr(0, what.find(':')) + " needs a value");
  }
  if (dynamic_cast<const CLI::ValidationError*>(&error) != nullptr) {
    std::fprintf(stderr, "%s: %s\n", PathOf(command).c_str(), what.c_str());
    return kUsageStatus;
  }
  return Complain(command, what);
}

CLI::Option& AddNumber(CLI::App& command, const std::string& name, int least, int most, int* value,
                       const std::string& help) {
  auto take = [=](const std::string& text) {
    auto number = wire::ParseNumber(text, least, most);
    if (!number) {
      RefuseValue(name + " expects a number from " + std::to_string(least) + " to " +
                  std::to_string(most) + ", found '" + text + "'");
    }
    *value = static_cast<int>(*number);
  };
  return *command.add_option_function<std::string>(name, take, help)->type_name("N");
}

void RefuseValue(const std::string& sentence) { throw CLI::ValidationError(sentence); }

}  // namespace longwire::cli
