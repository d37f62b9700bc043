// What a link that is starting says before it serves programs: why it cannot.
#pragma once

#include <chrono>
#include <string>

#include "wire/socket.h"

namespace longwire::shim {

class LinkWords {
 public:
  // The link's standard error until it serves; -1 where no descriptors are left for it.
  int Open();
  // The link has its copy now, or was not started.
  void CloseOtherEnd() { said_.Reset(); }
  // Waits until the link says something or has nothing to say any more, at most this long. False if
  // it spoke, and then ended or serves.
  bool Wait(std::chrono::milliseconds time);
  // Its last line, or that there is none.
  std::string Sentence() const;

 private:
  wire::Descriptor heard_, said_;
  std::string text_;
  bool over_ = false;
};

}  // namespace longwire::shim
