// What the library knows: who initialised it and what the server said last. No session is opened,
// no thread runs and no connection stays open between questions, so a program may fork at any time
// and use CUDA in the child.
#pragma once

#include <memory>

#include "nvml-shim/abi.h"
#include "wire/view.h"

namespace longwire::nvml {

using View = std::shared_ptr<const wire::ViewReply>;

// Counts one more user; the first one asks the server. DRIVER_NOT_LOADED when there is no server
// (silently) or none that answers within five seconds (with a sentence on standard error).
nvmlReturn_t AddUser();
nvmlReturn_t RemoveUser();

// What the server says: fresh, or a moment old. UNINITIALIZED without users, GPU_IS_LOST when the
// server does not answer any more.
nvmlReturn_t Look(View* view);

// A device of a view. Before the program has its CUDA session the devices are those that it would
// get, later those that it has: a handle is a place in this list.
struct Seen {
  View view;
  const wire::ViewedDevice* device = nullptr;
  unsigned index = 0;

  // Of a CUdevice_attribute; `otherwise` where the server does not know it.
  int Attribute(int attribute, int otherwise) const;
};

nvmlReturn_t Find(nvmlDevice_t handle, Seen* seen);
nvmlDevice_t HandleOf(size_t index);

}  // namespace longwire::nvml
