#include "cli/report.h"

#include <cstdio>

#include "cli/text.h"

namespace longwire::cli {

void Report::Title(const std::string& what) {
  title_ = what;
  if (!json_) std::printf("%s\n", what.c_str());
}

void Report::Bad(const std::string& what, const std::string& remedy) {
  ++problems_;
  Add("problem", what, remedy);
}

void Report::Add(const char* kind, const std::string& what, const std::string& remedy) {
  if (!json_) {
    const std::string shown = remedy.empty() ? kind : "PROBLEM";
    std::printf("  %-7s %s\n", shown.c_str(), what.c_str());
    if (!remedy.empty()) std::printf("          remedy: %s\n", remedy.c_str());
    return;
  }
  findings_ += (findings_.empty() ? "" : ",") + ("{\"about\":" + JsonString(title_)) +
               ",\"kind\":" + JsonString(kind) + ",\"what\":" + JsonString(what) +
               ",\"remedy\":" + (remedy.empty() ? "null" : JsonString(remedy)) + "}";
}

void Report::End() {
  if (json_) {
    std::printf("{\"problems\":%d,\"findings\":[%s]}\n", problems_, findings_.c_str());
  } else if (problems_ == 0) {
    std::printf("all is well\n");
  } else {
    std::printf("%d problem%s\n", problems_, problems_ == 1 ? "" : "s");
  }
}

}  // namespace longwire::cli
