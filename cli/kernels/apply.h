// longwire advise --apply: rules that follow from advice, in a configuration of longwired.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "server/statistics/advice.h"

namespace longwire::cli {

// The rules that the advice of a program comes to, as lines of YAML; those that the text has
// already are left out. None has a grid or a block.
struct ProgramAdvice {
  std::string program;  // its path
  std::vector<statistics::Advice> advice;
};

struct Edit {
  std::string text;     // the whole file
  std::string diff;     // for people
  size_t rules = 0;     // new ones
  std::string problem;  // a sentence: why nothing can be written; then the rest is empty
};
// `text`: of the configuration `file`, which only names it.
Edit AddRulesTo(const std::string& file, const std::string& text,
                const std::vector<ProgramAdvice>& programs);

// Puts the rules of the advice into the file, and says what was changed. False with a sentence:
// nothing applies, or the file would not be right; it is then as it was.
bool Apply(const std::string& file, const std::vector<ProgramAdvice>& programs, std::string* said);

}  // namespace longwire::cli
