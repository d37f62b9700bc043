// Reading a configuration as the daemon does, for tests.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "server/config/config.h"

namespace longwire::config {

inline std::string FileText(const std::filesystem::path& file) {
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

inline Draft ReadCompletely(const std::string& text, Problems* problems) {
  Draft draft;
  ReadText("c.yaml", text, &draft, problems);
  FillDefaults("/run/test", &draft.config);
  Check(draft, problems);
  return draft;
}

// The configuration of a text without mistakes.
inline Config Good(const std::string& text) {
  Problems problems;
  Draft draft = ReadCompletely(text, &problems);
  EXPECT_EQ(problems.Text(), "") << text;
  return draft.config;
}

// What is said about the text, a line for each mistake.
inline std::string Errors(const std::string& text) {
  Problems problems;
  ReadCompletely(text, &problems);
  return problems.Text();
}

inline std::string ErrorsOfFile(const std::string& path) {
  Problems problems;
  Draft draft;
  ReadFile(path, &draft, &problems);
  FillDefaults("/run/test", &draft.config);
  Check(draft, &problems);
  return problems.Text();
}

}  // namespace longwire::config
