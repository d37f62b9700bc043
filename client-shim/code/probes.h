// Probes of the user in the program's kernels (probe/): where LONGWIRE_PROBE names an object of
// them, modules are rewritten before they are sent, and their maps are read when they end.
#pragma once

#include <cstddef>
#include <span>

#include "client-shim/code/image.h"

namespace longwire::shim {

struct Context;
struct Module;

// Loads the library of probes, if LONGWIRE_PROBE asks for it. Once the devices are known.
void StartProbes();

// An image as it is loaded: the program's, or text with probes, which lives as long as this.
class ProbedImage {
 public:
  // `context`: of a module; null: of a library.
  ProbedImage(const Image& image, const Context* context);
  ~ProbedImage();
  ProbedImage(const ProbedImage&) = delete;
  ProbedImage& operator=(const ProbedImage&) = delete;

  const Image& image() const { return image_; }
  bool has_probes() const { return text_ != nullptr; }

 private:
  Image image_;
  char* text_ = nullptr;
};

// Has probes from now on.
void NoteProbes(Module* module);
// Before the module is unloaded, and before the context ends: their maps are read.
void ReadProbes(Module* module);
void ReadProbes(Context* context);
// When the program ends: reads all that is left, and prints.
void EndProbes();

}  // namespace longwire::shim
