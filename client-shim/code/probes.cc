#include "client-shim/code/probes.h"

#include <dlfcn.h>

#include <algorithm>
#include <climits>
#include <string>

#include "base/environment.h"
#include "client-shim/connect/options.h"
#include "client-shim/context/context.h"
#include "client-shim/context/properties.h"
#include "client-shim/entry/entry.h"

namespace longwire::shim {
namespace {

const probe::Api* the_api = nullptr;  // set once, before the first module is loaded
thread_local bool without_probes = false;

// Of the context's device, or the oldest of all: a library is for each.
int CapabilityFor(const Context* context) {
  int lowest = INT_MAX;
  for (int ordinal = 0;; ++ordinal) {
    const Device* device = FindDevice(ordinal);
    if (device == nullptr) return lowest == INT_MAX ? 0 : lowest;
    if (context != nullptr && context->device != ordinal) continue;
    const int capability =
        AttributeOr(*device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0) * 10 +
        AttributeOr(*device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0);
    lowest = std::min(lowest, capability);
  }
}

}  // namespace

const probe::Api* TheProbes() { return the_api; }

void StartProbes() {
  const char* object = base::Environment("LONGWIRE_PROBE");
  const char* library = base::Environment("LONGWIRE_PROBE_LIBRARY");
  if (object == nullptr || library == nullptr) return;
  const auto given = [](const char* name) {
    const char* value = base::Environment(name);
    return value == nullptr ? "" : value;
  };
  void* opened = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) {
    Say("there are no probes: %s; install longwire-client again", dlerror());
    return;
  }
  auto make = reinterpret_cast<probe::OpenApi>(dlsym(opened, probe::kApiSymbol));
  char sentence[1024] = "the library has no probes";
  if (make != nullptr) {
    the_api = make(LONGWIRE_VERSION, object, given("LONGWIRE_PROBE_KERNELS"),
                   given("LONGWIRE_PROBE_FILE"), sentence, sizeof(sentence));
  }
  if (the_api == nullptr) Say("there are no probes: %s", sentence);
}

WithoutProbes::WithoutProbes() { without_probes = true; }
WithoutProbes::~WithoutProbes() { without_probes = false; }

ProbedImage::ProbedImage(const Image& image, const Context* context)
    : program_(image), image_(image) {
  if (the_api == nullptr || without_probes) return;
  size_t bytes = 0;
  if (!image.bytes.empty()) {
    text_ =
        the_api->rewrite(image.bytes.data(), image.bytes.size(), CapabilityFor(context), &bytes);
  }
  if (text_ == nullptr && !image.parts.empty()) {
    const auto& part = image.parts.front();
    the_api->refuse(part.data(), part.size(),
                    "it is linked of separately compiled parts when it is loaded; build it without "
                    "-rdc=true");
  }
  if (text_ == nullptr) return;
  image_ = Image{ImageKind::kText, {reinterpret_cast<const std::byte*>(text_), bytes}, {}};
}

void ProbedImage::Reject(CUresult result) {
  const char* name = ErrorName(result);
  const std::string why = std::string("the driver refuses it with probes (") +
                          (name == nullptr ? std::to_string(result) : name) +
                          "), so it is loaded without";
  the_api->reject(program_.bytes.data(), program_.bytes.size(), text_, why.c_str());
  the_api->release(text_);
  text_ = nullptr;
  image_ = program_;
}

ProbedImage::~ProbedImage() {
  if (text_ != nullptr) the_api->release(text_);
}

}  // namespace longwire::shim
