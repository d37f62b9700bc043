#include "cli/top/view.h"

#include <algorithm>
#include <utility>

#include "base/printable.h"
#include "wire/number.h"

namespace longwire::cli::top {
namespace {

constexpr size_t kLongestTyped = 64;  // bytes

// Takes the last character of UTF-8 away.
void RemoveLast(std::string* text) {
  while (!text->empty() && (static_cast<unsigned char>(text->back()) & 0xc0) == 0x80) {
    text->pop_back();
  }
  if (!text->empty()) text->pop_back();
}

}  // namespace

void View::SetPicture(Picture picture) {
  all_ = std::move(picture);
  known_ = true;
  problem_.clear();
  Arrange();
}

// The selection stays with its session; if that is gone, it is what stands in its place.
void View::Arrange() {
  shown_ = all_;
  Filter(mode_ == Mode::kFilter ? typed_ : filter_, &shown_.sessions);
  Sort(sorted_, reversed_, &shown_.sessions);
  const auto& rows = shown_.sessions;
  auto found = std::ranges::find(rows, selected_, &SessionRow::id);
  if (found != rows.end()) place_ = static_cast<size_t>(found - rows.begin());
  place_ = rows.empty() ? 0 : std::min(place_, rows.size() - 1);
  selected_ = rows.empty() ? 0 : rows[place_].id;
}

const SessionRow* View::Selected() const {
  return shown_.sessions.empty() ? nullptr : &shown_.sessions[place_];
}

std::optional<transport::AdminRequest> View::TakeRequest() {
  return std::exchange(request_, std::nullopt);
}

void View::Press(Key key, const std::string& text) {
  if (key == Key::kInterrupt) {
    quit_ = true;
    return;
  }
  switch (mode_) {
    case Mode::kTables:
      return PressInTables(key, text);
    case Mode::kHelp:
      mode_ = Mode::kTables;
      return;
    case Mode::kQuestion:
      return AnswerQuestion(key, text);
    case Mode::kFilter:
    case Mode::kDevice:
      return PressInLine(key, text);
  }
}

void View::Move(int rows) {
  if (shown_.sessions.empty()) return;
  const auto last = static_cast<int>(shown_.sessions.size()) - 1;
  place_ = static_cast<size_t>(std::clamp(static_cast<int>(place_) + rows, 0, last));
  selected_ = shown_.sessions[place_].id;
}

void View::PressInTables(Key key, const std::string& text) {
  said_.clear();
  const auto page = static_cast<int>(page_rows_), all = static_cast<int>(shown_.sessions.size());
  const int step = key == Key::kLeft ? kColumns - 1 : 1;
  switch (key) {
    case Key::kUp:
      return Move(-1);
    case Key::kDown:
      return Move(1);
    case Key::kPageUp:
      return Move(-page);
    case Key::kPageDown:
      return Move(page);
    case Key::kHome:
      return Move(-all);
    case Key::kEnd:
      return Move(all);
    case Key::kLeft:
    case Key::kRight:
      sorted_ = static_cast<Column>((static_cast<int>(sorted_) + step) % kColumns);
      return Arrange();
    case Key::kEscape:
      filter_.clear();
      return Arrange();
    case Key::kText:
      if (text.size() == 1) PressLetter(text[0]);
      return;
    default:
      return;
  }
}

void View::PressLetter(char letter) {
  switch (letter) {
    case 'q':
      quit_ = true;
      return;
    case '?':
    case 'h':
      mode_ = Mode::kHelp;
      return;
    case '<':
      return PressInTables(Key::kLeft, "");
    case '>':
      return PressInTables(Key::kRight, "");
    case 'r':
      reversed_ = !reversed_;
      return Arrange();
    case '/':
      mode_ = Mode::kFilter;
      typed_ = filter_;
      return Arrange();
    case 'k':
      return AskToKill();
    case 'd':
      return AskToDrain();
    case 'c':
      return AskForDevice();
    default:
      said_ = "? lists the keys";
  }
}

void View::AskToKill() {
  const SessionRow* row = Selected();
  if (row == nullptr) {
    said_ = "there is no session to kill";
    return;
  }
  question_.text = "kill session " + std::to_string(row->id) + " (" + row->program + " of " +
                   row->identity + ")? y or n";
  question_.request.Clear();
  question_.request.mutable_kill()->set_session(row->id);
  mode_ = Mode::kQuestion;
}

void View::AskToDrain() {
  question_.text = all_.draining ? "open new sessions again? y or n"
                                 : "drain the server: open no new sessions? y or n";
  question_.request.Clear();
  question_.request.mutable_drain()->set_off(all_.draining);
  mode_ = Mode::kQuestion;
}

void View::AskForDevice() {
  const SessionRow* row = Selected();
  typed_.clear();
  if (row != nullptr && !row->devices.empty()) {
    typed_ = std::to_string(row->devices.front());
  } else if (!all_.devices.empty()) {
    typed_ = std::to_string(all_.devices.front().ordinal);
  }
  mode_ = Mode::kDevice;
}

void View::CordonTyped() {
  auto number = wire::ParseNumber(typed_, 0, INT32_MAX);
  auto device = std::ranges::find(all_.devices, static_cast<int32_t>(number.value_or(-1)),
                                  &DeviceRow::ordinal);
  if (!number || device == all_.devices.end()) {
    said_ = "there is no device '" + typed_ + "'";
    return;
  }
  request_.emplace().mutable_cordon()->set_device(device->ordinal);
  request_->mutable_cordon()->set_off(device->cordoned);
}

void View::AnswerQuestion(Key key, const std::string& text) {
  const bool yes = key == Key::kText && (text == "y" || text == "Y");
  const bool no = key == Key::kEscape || (key == Key::kText && (text == "n" || text == "N"));
  if (!yes && !no) return;
  mode_ = Mode::kTables;
  if (yes) request_ = question_.request;
  said_ = yes ? "" : "nothing was done";
}

void View::PressInLine(Key key, const std::string& text) {
  const bool filter = mode_ == Mode::kFilter;
  if (key == Key::kText && typed_.size() + text.size() <= kLongestTyped) typed_ += text;
  if (key == Key::kBackspace) RemoveLast(&typed_);
  if (key == Key::kEnter || key == Key::kEscape) mode_ = Mode::kTables;
  if (key == Key::kEnter && filter) filter_ = typed_;
  if (key == Key::kEnter && !filter) CordonTyped();
  if (key == Key::kEscape && filter) filter_.clear();
  Arrange();
}

}  // namespace longwire::cli::top
