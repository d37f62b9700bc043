// Probes of the user in the program's kernels (probe/): where LONGWIRE_PROBE names an object of
// them, modules are rewritten before they are sent. probe_maps.h reads what the probes wrote.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <span>

#include "client-shim/code/image.h"
#include "probe/api.h"

namespace longwire::shim {

struct Context;

// Loads the library of probes, if LONGWIRE_PROBE asks for it. Once the devices are known.
void StartProbes();
// Null: there are none.
const probe::Api* TheProbes();

// While one lives, this thread loads modules of ours, which have no probes.
class WithoutProbes {
 public:
  WithoutProbes();
  ~WithoutProbes();
  WithoutProbes(const WithoutProbes&) = delete;
  WithoutProbes& operator=(const WithoutProbes&) = delete;
};

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
  // The driver did not take the text: from now on this is the program's image.
  void Reject(CUresult result);

 private:
  const Image& program_;
  Image image_;
  char* text_ = nullptr;
};

}  // namespace longwire::shim
