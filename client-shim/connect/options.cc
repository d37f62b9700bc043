#include "client-shim/connect/options.h"

#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include "base/environment.h"
#include "base/printable.h"
#include "client-shim/support/never_destroyed.h"
#include "wire/disabled_names.h"
#include "wire/duration.h"
#include "wire/lane.h"
#include "wire/rings/spinning.h"
#include "wire/switches.h"

namespace longwire::shim {
namespace {

std::vector<std::string> Split(const std::string& text) {
  std::vector<std::string> parts;
  size_t start = 0;
  while (start <= text.size()) {
    size_t comma = text.find(',', start);
    if (comma == std::string::npos) comma = text.size();
    std::string part = wire::Trim(text.substr(start, comma - start));
    if (!part.empty()) parts.push_back(part);
    start = comma + 1;
  }
  return parts;
}

// For smaller uploads, the round trip takes longer than sending the bytes.
constexpr uint64_t kSmallestCachedUpload = uint64_t{64} << 10;
constexpr uint32_t kMaxCopyThreads = 64;
// Of a trace's file: about a million launches. Less than the smallest holds no program's beginning.
constexpr uint64_t kTraceFileBytes = uint64_t{1} << 30;
constexpr uint64_t kSmallestTraceFile = uint64_t{64} << 10;

// `text` as a number from `least` to `most`. If it is none: `usual`, with a line on stderr.
uint64_t Number(const std::string& text, const char* key, uint64_t least, uint64_t most,
                uint64_t usual) {
  if (text.empty()) return usual;
  char* end = nullptr;
  uint64_t number = strtoull(text.c_str(), &end, 10);
  bool digits = text.find_first_not_of("0123456789") == std::string::npos;
  if (digits && *end == '\0' && number >= least && number <= most) return number;
  Say("%s=%s is not a number from %llu to %llu; %llu is used instead", key, text.c_str(),
      static_cast<unsigned long long>(least), static_cast<unsigned long long>(most),
      static_cast<unsigned long long>(usual));
  return usual;
}

// LONGWIRE_CACHE_UPLOADS, or the setting under its former name, with a warning.
uint64_t CachedUploads(const wire::ClientSettings& settings) {
  constexpr const char* kKey = "LONGWIRE_CACHE_UPLOADS";
  constexpr const char* kFormerKey = "LONGWIRE_KEEP_UPLOADS";
  std::string value = settings.Value(kKey), former = settings.Value(kFormerKey);
  if (!former.empty()) {
    Say("%s is the former name of %s: rename the setting%s", kFormerKey, kKey,
        value.empty() ? "" : "; it is ignored, since both are set");
  }
  if (value.empty()) value = former;
  return value == "0" ? 0 : Number(value, kKey, kSmallestCachedUpload, UINT64_MAX, 0);
}

void ReadTransferOptions(const wire::ClientSettings& settings, Options* options) {
  auto number = [&](const char* key, uint64_t least, uint64_t most, uint64_t usual) {
    return Number(settings.Value(key), key, least, most, usual);
  };
  int processors = wire::AllowedCores();
  options->lanes = static_cast<uint32_t>(
      number("LONGWIRE_TRANSFER_STREAMS", 0, wire::kMaxLanes, wire::DefaultLanes(processors)));
  // Smaller copies are part of their record.
  options->lane_copy_bytes = number("LONGWIRE_TRANSFER_FROM", wire::kInlineCopyBytes + 1,
                                    UINT64_MAX, wire::kLaneCopyBytes);
  options->lane_chunk_bytes = number("LONGWIRE_TRANSFER_CHUNK", wire::kMinLaneChunk,
                                     wire::kMaxLaneChunk, wire::kLaneChunkBytes);
  options->cached_uploads = CachedUploads(settings);
  options->copy_threads = static_cast<uint32_t>(
      number("LONGWIRE_COPY_THREADS", 1, kMaxCopyThreads, std::clamp(processors / 2, 1, 8)));
}

std::string Compression(const std::string& word) {
  if (word == "none" || word == "lz4" || word == "zstd") return word;
  if (!word.empty() && word != "auto") {
    Say("LONGWIRE_COMPRESSION=%s is not auto, none, lz4 or zstd; auto is used instead",
        word.c_str());
  }
  return "auto";
}

bool IndependentWords(const std::string& word) {
  if (!word.empty() && word != "ordered" && word != "independent") {
    Say("LONGWIRE_LIVE_WORDS=%s is not ordered or independent; ordered is used instead",
        word.c_str());
  }
  return word == "independent";
}

std::optional<std::chrono::seconds> Wait(const std::string& text) {
  if (text.empty()) return std::nullopt;
  auto seconds = wire::ParseWait(text);
  if (!seconds) {
    Say("LONGWIRE_WAIT has to be %s; it is %s, and the program does not wait", wire::kWaitExpected,
        text.c_str());
  }
  return std::chrono::seconds(seconds.value_or(0));
}

}  // namespace

Options ReadOptions(const char* configuration_path) {
  wire::ClientSettings settings(configuration_path);
  auto value = [&](const char* key) { return settings.Value(key); };
  Options options;
  options.server = value("LONGWIRE_SERVER");
  const std::string across = value("LONGWIRE_ACROSS");
  options.across = !across.empty() && across != "0";
  const std::string same_host = value("LONGWIRE_SAME_HOST");
  options.same_host = !same_host.empty() && same_host != "0";
  options.identity = wire::FindIdentityFiles(settings);
  options.link = value("LONGWIRE_LINK");
  options.runtime_directory = value("LONGWIRE_RUNTIME_DIR");
  options.compression = Compression(value("LONGWIRE_COMPRESSION"));
  options.independent_words = IndependentWords(value("LONGWIRE_LIVE_WORDS"));
  options.devices = value("LONGWIRE_DEVICES");
  options.memory = value("LONGWIRE_MEMORY");
  options.labels = value("LONGWIRE_LABELS");
  options.time_limit = value("LONGWIRE_TIME_LIMIT");
  options.wait = Wait(value("LONGWIRE_WAIT"));
  std::string log = value("LONGWIRE_LOG");
  options.log = !log.empty() && log != "0";
  for (const std::string& what : Split(value("LONGWIRE_TRACE"))) {
    if (what == "calls") {
      options.trace_calls = true;
    } else if (what == "allocations") {
      options.trace_allocations = true;
    } else if (what == "summary") {
      options.trace_summary = true;
    } else {
      options.unknown_traces.push_back(what);
    }
  }
  options.trace_file = value("LONGWIRE_TRACE_FILE");
  options.trace_file_limit = Number(value("LONGWIRE_TRACE_FILE_LIMIT"), "LONGWIRE_TRACE_FILE_LIMIT",
                                    kSmallestTraceFile, UINT64_MAX, kTraceFileBytes);
  options.disabled = value("LONGWIRE_DISABLE");
  ReadTransferOptions(settings, &options);
  const char* blocking = base::Environment("CUDA_LAUNCH_BLOCKING");
  options.launch_blocking = blocking != nullptr && blocking[0] == '1';
  for (const std::string& base : Split(value("LONGWIRE_WINDOW_BASES"))) {
    options.window_bases.push_back(strtoull(base.c_str(), nullptr, 16));
  }
  options.window_bytes = strtoull(value("LONGWIRE_WINDOW_BYTES").c_str(), nullptr, 0);
  return options;
}

const Options& ProcessOptions() {
  static NeverDestroyed<Options> options([] {
    Options read = ReadOptions();
    wire::SetDisabled(read.disabled);
    if (wire::IsSwitchedOff("striped-transfers")) read.lanes = 0;
    return read;
  }());
  return *options;
}

void Say(const char* format, ...) {
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  const size_t end = std::min<size_t>(length < 0 ? 0 : length, sizeof(text) - 1);
  // Text of a server, too, stays on one line and moves no cursor.
  const std::string line = "longwire: " + base::Printable({text, end}) + "\n";
  ssize_t ignored = write(STDERR_FILENO, line.data(), line.size());
  (void)ignored;
}

}  // namespace longwire::shim
