// The terminal, by ncurses: lines go out, keys come in. One at a time.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/top/view.h"

namespace longwire::cli::top {

class Screen {
 public:
  Screen() = default;
  // Leaves the terminal as it was.
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  // False with a sentence.
  bool Open(std::string* sentence);
  void Draw(const std::vector<Line>& page);
  int width() const;
  int height() const;

  enum class Event { kNone, kKey, kResized, kGone };  // kGone: nobody is at the terminal any more
  // Waits at most this time.
  Event Wait(int milliseconds, Key* key, std::string* text);

 private:
  Event Next(Key* key, std::string* text);

  void* screen_ = nullptr;  // ncurses' SCREEN
};

}  // namespace longwire::cli::top
