#include "scheduler/testing/transcript.h"

#include <algorithm>
#include <sstream>
#include <stdexcept>

namespace longwire::scheduler::testing {

namespace {

constexpr char kDivider[] = "----";

// Splits "10.5ms" into 10.5 and "ms".
std::pair<double, std::string> SplitUnit(const std::string& text) {
  size_t digits = 0;
  try {
    const double number = std::stod(text, &digits);
    return {number, text.substr(digits)};
  } catch (const std::exception&) {
    throw std::invalid_argument("'" + text + "' does not begin with a number");
  }
}

}  // namespace

Command::Command(const std::string& text) : line(text) {
  std::istringstream stream(text);
  for (std::string word; stream >> word;) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos) {
      words.push_back(word);
    } else {
      values_[word.substr(0, equals)] = word.substr(equals + 1);
    }
  }
}

const std::string& Command::Word(size_t index) const {
  if (index >= words.size()) throw std::invalid_argument("'" + line + "' lacks a word");
  return words[index];
}

bool Command::Has(std::string_view word) const {
  return std::find(words.begin(), words.end(), word) != words.end();
}

const std::string* Command::Find(const std::string& name) const {
  used_[name] = true;
  auto found = values_.find(name);
  return found == values_.end() ? nullptr : &found->second;
}

std::string Command::Text(const std::string& name, const std::string& otherwise) const {
  const std::string* text = Find(name);
  return text == nullptr ? otherwise : *text;
}

uint64_t Command::Number(const std::string& name, uint64_t otherwise) const {
  const std::string* text = Find(name);
  return text == nullptr ? otherwise : ParseNumber(*text);
}

Time Command::Span(const std::string& name, Time otherwise) const {
  const std::string* text = Find(name);
  return text == nullptr ? otherwise : ParseTime(*text);
}

void Command::CheckAllUsed() const {
  for (const auto& [name, value] : values_) {
    if (!used_[name]) throw std::invalid_argument("'" + line + "': nobody knows " + name + "=");
  }
}

uint64_t ParseNumber(const std::string& text) {
  if (text.empty() || text.find_first_not_of("0123456789") != std::string::npos) {
    throw std::invalid_argument("'" + text + "' is not a number");
  }
  return std::stoull(text);
}

Time ParseTime(const std::string& text) {
  if (text == "never") return kForever;
  const auto [number, unit] = SplitUnit(text);
  const std::map<std::string, double> units = {{"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"", 0}};
  auto found = units.find(unit);
  if (found == units.end() || (unit.empty() && number != 0)) {
    throw std::invalid_argument("'" + text + "' needs a unit: us, ms or s");
  }
  return Time(static_cast<int64_t>(number * found->second));
}

std::string FormatTime(Time time) {
  if (time == kForever) return "never";
  if (time == Time{0}) return "0";
  std::string text = std::to_string(static_cast<double>(time.count()) / 1e6);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text + "ms";
}

uint64_t ParseBytes(const std::string& text) {
  const auto [number, unit] = SplitUnit(text);
  const std::map<std::string, double> units = {{"MiB", 0x1p20}, {"GiB", 0x1p30}, {"", 0}};
  auto found = units.find(unit);
  if (found == units.end() || (unit.empty() && number != 0)) {
    throw std::invalid_argument("'" + text + "' needs a unit: MiB or GiB");
  }
  return static_cast<uint64_t>(number * found->second);
}

std::string RunTranscript(const std::string& text, const RunBlock& run) {
  std::istringstream stream(text);
  std::string result;
  std::vector<Command> commands;
  for (std::string line; std::getline(stream, line);) {
    if (line == kDivider) {
      std::string output;
      try {
        output = run(commands);
      } catch (const std::exception& error) {
        output = std::string("error: ") + error.what() + "\n";
      }
      result += line + "\n" + output + "\n";
      commands.clear();
      while (std::getline(stream, line) && !line.empty()) {
      }
      continue;
    }
    result += line + "\n";
    if (!line.empty() && line[0] != '#') commands.emplace_back(line);
  }
  while (result.ends_with("\n\n")) result.pop_back();
  return result;
}

}  // namespace longwire::scheduler::testing
