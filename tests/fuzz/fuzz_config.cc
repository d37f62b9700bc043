// Reads any bytes as a configuration file. Each complaint has a place; what is good is written and
// read back as the same.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "server/config/config.h"

namespace {

using namespace longwire::config;

Draft Read(const std::string& text, Problems* problems) {
  Draft draft;
  ReadText("f", text, &draft, problems);
  FillDefaults("/run/fuzz", &draft.config);
  Check(draft, problems);
  return draft;
}

void Demand(bool good, const std::string& text) {
  if (good) return;
  std::fprintf(stderr, "%s\n", text.c_str());
  std::abort();
}

void CheckSentences(const Problems& problems) {
  std::vector<std::string> sentences = problems.Sentences();
  Demand(sentences.size() <= Problems::kMaxProblemsShown + 1, "too many sentences");
  for (const std::string& sentence : sentences) {
    bool has_place = sentence.starts_with("f:") || sentence.starts_with("and ");
    Demand(has_place && sentence.find_first_of("\n\r") == std::string::npos, sentence);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Problems problems;
  Draft draft = Read(std::string(reinterpret_cast<const char*>(data), size), &problems);
  CheckSentences(problems);
  // Wrong values were left out: what is there is right, unless something was not complete.
  if (!problems.empty()) return 0;
  std::string written = Write(draft.config);
  Problems later;
  Draft again = Read(written, &later);
  Demand(later.empty(), later.Text() + written);
  Demand(again.config.SerializeAsString() == draft.config.SerializeAsString(), written);
  return 0;
}
