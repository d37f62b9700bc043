// Between the client's library, which has the standard library only, and the one of probes, which
// it loads where LONGWIRE_PROBE names an object: plain C, for their C++ runtimes are their own.
#pragma once

#include <cstddef>
#include <cstdint>

namespace longwire::probe {

// What a probe saw begin and end, by the device's clock.
struct Span {
  const char* kernel;  // its name in the module, as long as the program runs
  uint64_t number;     // of the warp, or the block
  uint64_t began, ended;
};

struct Api {
  // An image of the program, of `bytes`, for devices of this compute capability (90 is 9.0) and
  // newer. Text with probes, ending in a zero, to be given back to Release; null: it has none, and
  // is loaded as it is.
  char* (*rewrite)(const void* image, size_t bytes, int capability, size_t* text_bytes);
  void (*release)(char* text);
  // Before it is given back: the image was loaded without probes for this reason.
  void (*reject)(const void* image, size_t bytes, const char* text, const char* why);
  // An image that has no probes for this reason, which the report will have.
  void (*refuse)(const void* image, size_t bytes, const char* why);
  // The variables of each rewritten module that hold maps.
  size_t (*maps)();
  const char* (*symbol)(size_t map);
  size_t (*bytes)(size_t map);
  // What one of them held, when its module or context ended; null: it could not be read.
  void (*take)(size_t map, const void* contents);
  // The spans that a map held: how many, of which `room` are stored; *lost more found no room on
  // the device. 0 of a map that has none. `title`: the map's name.
  size_t (*spans)(size_t map, const void* contents, Span* found, size_t room, uint64_t* lost);
  const char* (*title)(size_t map);
  // Prints, once, when the program ends.
  void (*report)();
};

// `object`: the file; `kernels`: a pattern of names, empty for all; `output`: a file for the
// report, empty for standard error. Null with a sentence.
inline constexpr char kApiSymbol[] = "longwire_probe_api";
using OpenApi = const Api* (*)(const char* version, const char* object, const char* kernels,
                               const char* output, char* sentence, size_t room);

}  // namespace longwire::probe
