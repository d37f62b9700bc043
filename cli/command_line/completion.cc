// Scripts for bash, zsh and fish. All three walk along the words: which command is meant so far,
// and what may follow there. What a program's own arguments are is left to the shell.
#include <array>
#include <sstream>

#include "cli/command_line/command_line.h"

namespace longwire::cli {
namespace {

// One command's words: those that may follow, and those of them that want a value.
struct Place {
  std::string path;  // "longwire cert init"
  std::vector<const CLI::App*> commands;
  std::vector<const CLI::Option*> options;
  bool takes_words;  // a program, or files
};

void Walk(const CLI::App& command, std::vector<Place>* places) {
  bool words = false;
  for (const CLI::Option* option : command.get_options(nullptr)) words |= option->get_positional();
  places->push_back({PathOf(command), CommandsOf(command), OptionsOf(command), words});
  for (const CLI::App* one : CommandsOf(command)) Walk(*one, places);
}

std::string Joined(const std::vector<std::string>& words, const char* between) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

std::vector<std::string> CommandNames(const Place& place) {
  std::vector<std::string> names;
  for (const CLI::App* one : place.commands) names.push_back(one->get_name());
  return names;
}

std::vector<std::string> OptionNames(const Place& place, bool with_value_only) {
  std::vector<std::string> names;
  for (const CLI::Option* option : place.options) {
    if (with_value_only && !TakesValue(*option)) continue;
    for (const std::string& name : NamesOf(*option)) names.push_back(name);
  }
  return names;
}

// In single quotes, for all three shells.
std::string Quoted(const std::string& text, const char* quote_inside) {
  std::string made = "'";
  for (char letter : text) made += letter == '\'' ? quote_inside : std::string(1, letter);
  return made + "'";
}

constexpr const char* kBashHead =
    R"(# longwire(1) completion                                    -*- shell-script -*-
_longwire_words() {
  case "$1" in
)";
constexpr const char* kBashTail = R"(    *) words= values= ;;
  esac
}

_longwire() {
  local current=${COMP_WORDS[COMP_CWORD]} path=longwire words values i word
  COMPREPLY=()
  _longwire_words "$path"
  for ((i = 1; i < COMP_CWORD; ++i)); do
    word=${COMP_WORDS[i]}
    if [[ $word == -- ]]; then
      COMPREPLY=($(compgen -c -- "$current"))
      return
    elif [[ " $values " == *" $word "* ]]; then
      ((++i))
    elif [[ $word != -* ]]; then
      if [[ " $words " != *" $word "* ]]; then
        COMPREPLY=($(compgen -f -- "$current"))
        return
      fi
      path="$path $word"
      _longwire_words "$path"
    fi
  done
  word=${COMP_WORDS[COMP_CWORD - 1]}
  if ((i > COMP_CWORD)) || [[ " $values " == *" $word "* ]]; then
    COMPREPLY=($(compgen -f -- "$current"))
  elif [[ $current == -* ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$current"))
  else
    COMPREPLY=($(compgen -W "$words" -- "$current") $(_longwire_free "$path" "$current"))
  fi
}
complete -o filenames -F _longwire longwire
)";

std::string Bash(const std::vector<Place>& places) {
  std::ostringstream script;
  script << kBashHead;
  std::string free;
  for (const Place& place : places) {
    std::vector<std::string> words = CommandNames(place);
    for (const std::string& name : OptionNames(place, false)) words.push_back(name);
    script << "    '" << place.path << "')\n      words='" << Joined(words, " ")
           << "'\n      values='" << Joined(OptionNames(place, true), " ") << "' ;;\n";
    if (place.takes_words) free += (free.empty() ? "" : " | ") + ("'" + place.path + "'");
  }
  std::string tail = kBashTail;
  const std::string frees = "}\n\n_longwire_free() {\n  case \"$1\" in\n    " + free +
                            ") compgen -f -- \"$2\" ;;\n  esac\n}\n\n_longwire() {";
  const std::string mark = "}\n\n_longwire() {";
  tail.replace(tail.find(mark), mark.size(), frees);
  script << tail;
  return script.str();
}

constexpr const char* kZshTail = R"(  esac
}

_longwire() {
  local path=longwire i word
  local -a commands options values
  _longwire_words "$path"
  for ((i = 2; i < CURRENT; ++i)); do
    word=${words[i]}
    if [[ $word == -- ]]; then
      shift $i words
      ((CURRENT -= i))
      _normal
      return
    elif (( ${values[(Ie)$word]} )); then
      ((++i))
    elif [[ $word != -* ]]; then
      if (( ! ${commands[(I)$word:*]} )); then
        _files
        return
      fi
      path="$path $word"
      _longwire_words "$path"
    fi
  done
  if (( i > CURRENT )); then
    _files
    return
  fi
  if [[ ${words[CURRENT]} == -* || $#commands -eq 0 ]]; then
    _describe -o option options
  fi
  if [[ ${words[CURRENT]} != -* ]]; then
    if (( $#commands )); then _describe command commands; else _files; fi
  fi
}
_longwire "$@"
)";

// "name:what it is" as _describe wants it.
std::string Described(const std::string& name, const std::string& about) {
  std::string text = name + ":";
  for (char letter : about) text += letter == ':' ? "\\:" : std::string(1, letter);
  return Quoted(text, "'\\''");
}

std::string Zsh(const std::vector<Place>& places) {
  std::ostringstream script;
  script << "#compdef longwire\n_longwire_words() {\n  commands=() options=() values=()\n"
            "  case \"$1\" in\n";
  for (const Place& place : places) {
    std::vector<std::string> commands, options;
    for (const CLI::App* one : place.commands) {
      commands.push_back(Described(one->get_name(), one->get_description()));
    }
    for (const CLI::Option* option : place.options) {
      for (const std::string& name : NamesOf(*option)) {
        options.push_back(Described(name, option->get_description()));
      }
    }
    script << "    '" << place.path << "')\n      commands=(" << Joined(commands, "\n        ")
           << ")\n      options=(" << Joined(options, "\n        ") << ")\n      values=("
           << Joined(OptionNames(place, true), " ") << ") ;;\n";
  }
  script << kZshTail;
  return script.str();
}

constexpr const char* kFishHead = R"fish(# Whether the words so far name just this command.
function __longwire_at
    set -l wanted $argv
    set -l found longwire
    for word in (commandline -opc)[2..]
        test "$word" = -- && return 1
        string match -q -- '-*' $word && continue
        contains -- $word $__longwire_commands && set -a found $word
    end
    test "$found" = "$wanted"
end
complete -c longwire -f
complete -c longwire -n "contains -- -- (commandline -opc)" -xa "(__fish_complete_subcommand)"
)fish";

std::string Fish(const std::vector<Place>& places) {
  std::ostringstream script;
  std::string names;
  for (const Place& place : places) {
    for (const std::string& name : CommandNames(place)) names += " " + name;
  }
  script << "# longwire(1) completion\nset -g __longwire_commands" << names << "\n" << kFishHead;
  for (const Place& place : places) {
    const std::string at =
        "complete -c longwire -n " + Quoted("__longwire_at " + place.path, "\\'");
    for (const CLI::App* one : place.commands) {
      script << at << " -a " << one->get_name() << " -d " << Quoted(one->get_description(), "\\'")
             << "\n";
    }
    for (const CLI::Option* option : place.options) {
      script << at;
      for (const std::string& name : option->get_lnames()) script << " -l " << name;
      for (const std::string& name : option->get_snames()) script << " -s " << name;
      script << (TakesValue(*option) ? " -r -F" : "") << " -d "
             << Quoted(option->get_description(), "\\'") << "\n";
    }
    if (place.takes_words) script << at << " -F\n";
  }
  return script.str();
}

}  // namespace

std::string CompletionFor(const std::string& shell, const CLI::App& app) {
  std::vector<Place> places;
  Walk(app, &places);
  if (shell == "bash") return Bash(places);
  if (shell == "zsh") return Zsh(places);
  return shell == "fish" ? Fish(places) : "";
}

}  // namespace longwire::cli
