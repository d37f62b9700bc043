// Whether a table of inputs provokes every refusal that the sources have: a refusal without an
// input that leads to it is one that nobody has read.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace longwire::policy::testing {

struct Refusal {
  std::string file;
  std::string words;  // the longest text between quotes in its statement
};

// The longest text of a statement; texts that stand side by side are one.
inline std::string LongestText(const std::string& statement) {
  static const std::regex kText(R"re("((?:[^"\\]|\\.)*)"(\s*(?=")|))re");
  std::string longest, whole;
  for (std::sregex_iterator at(statement.begin(), statement.end(), kText), end; at != end; ++at) {
    whole += (*at)[1].str();
    const bool goes_on = at->suffix().length() != 0 && *at->suffix().first == '"';
    if (goes_on) continue;
    if (whole.size() > longest.size()) longest = whole;
    whole.clear();
  }
  return longest;
}

// The statement from there on to its semicolon, which no refusal has in its text.
inline std::string StatementAt(const std::string& text, size_t begin) {
  bool quoted = false;
  size_t at = begin;
  for (; at < text.size() && (quoted || text[at] != ';'); ++at) {
    if (text[at] == '"' && text[at - 1] != '\\') quoted = !quoted;
  }
  return text.substr(begin, at - begin);
}

// Of the sources in a folder but those named, whose refusals are none of the verifier's.
inline std::vector<Refusal> RefusalsIn(const std::filesystem::path& folder,
                                       const std::set<std::string>& others) {
  // A definition begins so, too, and is none.
  static const std::regex kBegins(
      R"re(\bRefuse\((?!Hook hook|const )|\*sentence_? \+?=|\*wrong =|)re"
      R"re(throw PtxError\(|problem = |return "it )re");
  std::vector<Refusal> refusals;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    if (entry.path().extension() != ".cc" || others.contains(name)) continue;
    std::ifstream file(entry.path());
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    for (std::sregex_iterator at(text.begin(), text.end(), kBegins), end; at != end; ++at) {
      const std::string words = LongestText(StatementAt(text, static_cast<size_t>(at->position())));
      if (words.size() > 2) refusals.push_back({name, words});  // ": " and the like pass others on
    }
  }
  return refusals;
}

// The refusals that no sentence has. `never`: those that no input reaches, which have to be there.
inline std::vector<std::string> WithoutInput(const std::vector<Refusal>& refusals,
                                             const std::vector<std::string>& sentences,
                                             std::set<std::string> never) {
  std::vector<std::string> missing;
  for (const Refusal& refusal : refusals) {
    const bool found = std::ranges::any_of(sentences, [&](const std::string& sentence) {
      return sentence.find(refusal.words) != std::string::npos;
    });
    if (never.erase(refusal.words) != 0) {
      if (found) missing.push_back("is reached, and said to be never: " + refusal.words);
    } else if (!found) {
      missing.push_back(refusal.file + ": " + refusal.words);
    }
  }
  for (const std::string& words : never) missing.push_back("is not in the sources: " + words);
  return missing;
}

}  // namespace longwire::policy::testing
