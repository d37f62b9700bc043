// A file of trace events as Chrome's about:tracing and Perfetto read it: a list of JSON objects,
// one a line. It is written as the program runs; the list of a program that was killed has no end,
// which the format allows.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "wire/descriptors.h"

namespace longwire::shim {

// The tracks' processes in the file. Workers of further servers are kFurtherWorkers + server;
// what probes saw on a device, kProbes + kMapsOfProbes * device + which of their maps.
enum class TracePart : uint32_t {
  kProgram = 1,
  kWay = 2,
  kWorker = 3,
  kDevices = 10,
  kFurtherWorkers = 100,
  kProbes = 1000
};

inline constexpr uint32_t kMapsOfProbes = 64;

class TraceFile {
 public:
  // Opens the file, or, where another process writes there or has written there, PATH.PID. False,
  // with a sentence, if it cannot be. `limit`: bytes.
  bool Open(const std::string& path, uint64_t limit, std::string* sentence);
  const std::string& path() const { return path_; }

  // `start`: what is 0 in the file, in nanoseconds; earlier times become 0.
  void Begin(uint64_t start) { start_ = start; }

  // A span on a track, and `arguments`: members of an object, or nothing.
  void Span(uint32_t part, uint64_t track, std::string_view name, uint64_t began, uint64_t ended,
            std::string_view arguments);
  // A part of the way that a call takes; parts of one call do not overlap.
  void WayPart(uint64_t call, std::string_view name, uint64_t began, uint64_t ended);
  // An arrow to the span of the device from the call that was under way on the thread.
  struct Place {
    uint32_t part = 0;
    uint64_t track = 0;
    uint64_t at = 0;
  };
  void Flow(uint64_t call, const Place& from, const Place& to);
  void Counter(uint32_t part, std::string_view name, uint64_t at, std::string_view arguments);
  void Mark(std::string_view name, uint64_t at, std::string_view arguments);
  void NamePart(uint32_t part, std::string_view name);
  void NameTrack(uint32_t part, uint64_t track, std::string_view name);

  // True when the file has reached its limit or cannot be written; nothing more is taken.
  // `problem`: what to tell people, once.
  bool full() const { return full_; }
  std::string TakeProblem();
  uint64_t lines() const { return lines_; }

  void Flush();
  // The list's end.
  void Close();

 private:
  // Both are in the file, or none.
  void Lines(const std::string& one, const std::string& other);
  void Line(const std::string& object);
  std::string Time(uint64_t at) const;

  wire::OwnDescriptor file_;
  std::string path_;
  std::string text_;  // not written yet
  std::string problem_;
  uint64_t limit_ = 0;
  uint64_t bytes_ = 0;
  uint64_t start_ = 0;
  uint64_t lines_ = 0;
  bool full_ = false;
  bool closed_ = false;
};

}  // namespace longwire::shim
