// report FOLDER FILE: one page of all results in FOLDER (bench/results), those that compare remote
// with local as pictures.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "bench/results.h"

namespace {

int Main(int count, char** arguments) {
  using namespace longwire;
  if (count != 3) {
    std::fputs("report FOLDER FILE: writes one page of all results in FOLDER\n", stderr);
    return 2;
  }
  const std::filesystem::path folder = arguments[1];
  std::vector<std::filesystem::path> files;
  std::error_code problem;
  std::filesystem::recursive_directory_iterator all(folder, problem);
  for (const auto& entry : all) {
    if (entry.path().extension() == ".txt") files.push_back(entry.path());
  }
  if (problem || files.empty()) {
    std::fprintf(stderr, "report: there are no results (.txt) in %s\n", arguments[1]);
    return 1;
  }
  std::ranges::sort(files);
  std::vector<cli::BenchGroup> groups;
  for (const auto& file : files) {
    std::ifstream in(file);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    groups.push_back(bench::ReadResults(file.lexically_relative(folder).string(), text));
  }
  // Pictures first.
  std::ranges::stable_partition(groups, [](const auto& one) { return !one.rows.empty(); });
  std::ofstream out(arguments[2]);
  out << cli::BenchPage("Longwire: all results", groups);
  if (out.flush()) return 0;
  std::fprintf(stderr, "report: cannot write %s\n", arguments[2]);
  return 1;
}

}  // namespace

int main(int count, char** arguments) { return Main(count, arguments); }
