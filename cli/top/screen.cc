#include "cli/top/screen.h"

#define NCURSES_WIDECHAR 1
#include <ncurses.h>
#include <poll.h>
#include <unistd.h>

#include <cwchar>

#include "base/environment.h"

namespace longwire::cli::top {
namespace {

constexpr int kEscapeDelay = 50;  // ms: a key's sequence that stays one character is the escape key
constexpr wint_t kControlC = 3;
constexpr wint_t kControlH = 8;
constexpr wint_t kEscape = 27;
constexpr wint_t kDelete = 127;

enum Pair : short { kHeadPair = 1, kAlarmPair, kTitlesPair, kSelectedPair };

attr_t AttributesOf(Style style) {
  const bool colors = has_colors();
  auto pair = [&](short number, attr_t otherwise) {
    return colors ? static_cast<attr_t>(COLOR_PAIR(number)) : otherwise;
  };
  switch (style) {
    case Style::kHead:
      return A_BOLD | pair(kHeadPair, 0);
    case Style::kAlarm:
      return A_BOLD | pair(kAlarmPair, A_STANDOUT);
    case Style::kTitles:
      return pair(kTitlesPair, A_REVERSE);
    case Style::kSelected:
      return pair(kSelectedPair, A_REVERSE);
    default:
      return A_NORMAL;
  }
}

void StartColors() {
  if (!has_colors()) return;
  start_color();
  use_default_colors();
  init_pair(kHeadPair, COLOR_CYAN, -1);
  init_pair(kAlarmPair, COLOR_RED, -1);
  init_pair(kTitlesPair, COLOR_BLACK, COLOR_GREEN);
  init_pair(kSelectedPair, COLOR_BLACK, COLOR_CYAN);
}

bool KeyOf(wint_t code, Key* key) {
  static constexpr std::pair<wint_t, Key> kKeys[] = {
      {KEY_UP, Key::kUp},        {KEY_DOWN, Key::kDown},
      {KEY_LEFT, Key::kLeft},    {KEY_RIGHT, Key::kRight},
      {KEY_PPAGE, Key::kPageUp}, {KEY_NPAGE, Key::kPageDown},
      {KEY_HOME, Key::kHome},    {KEY_END, Key::kEnd},
      {KEY_ENTER, Key::kEnter},  {KEY_BACKSPACE, Key::kBackspace}};
  for (const auto& [known, value] : kKeys) {
    if (code != known) continue;
    *key = value;
    return true;
  }
  return false;
}

// Of a character; false if it means nothing here.
bool CharacterOf(wint_t code, Key* key, std::string* text) {
  *key = Key::kText;
  if (code == kControlC) *key = Key::kInterrupt;
  if (code == kEscape) *key = Key::kEscape;
  if (code == '\r' || code == '\n') *key = Key::kEnter;
  if (code == kControlH || code == kDelete) *key = Key::kBackspace;
  if (*key != Key::kText) return true;
  char bytes[16];
  mbstate_t state{};
  const size_t count = std::wcrtomb(bytes, static_cast<wchar_t>(code), &state);
  if (code < ' ' || count == static_cast<size_t>(-1)) return false;
  text->assign(bytes, count);
  return true;
}

}  // namespace

bool Screen::Open(std::string* sentence) {
  const char* terminal = base::Environment("TERM");
  set_escdelay(kEscapeDelay);
  SCREEN* screen = newterm(nullptr, stdout, stdin);
  if (screen == nullptr) {
    *sentence = std::string("the terminal '") + (terminal == nullptr ? "" : terminal) +
                "' is not known; set TERM, such as TERM=xterm, or use --once";
    return false;
  }
  screen_ = screen;
  raw();  // Ctrl-C is a key: the terminal is restored before the end
  noecho();
  nonl();
  keypad(stdscr, TRUE);
  nodelay(stdscr, TRUE);
  curs_set(0);
  StartColors();
  return true;
}

Screen::~Screen() {
  if (screen_ == nullptr) return;
  endwin();
  delscreen(static_cast<SCREEN*>(screen_));
}

int Screen::width() const { return getmaxx(stdscr); }
int Screen::height() const { return getmaxy(stdscr); }

void Screen::Draw(const std::vector<Line>& page) {
  erase();
  for (size_t row = 0; row < page.size(); ++row) {
    attrset(AttributesOf(page[row].style));
    mvaddstr(static_cast<int>(row), 0, page[row].text.c_str());
  }
  attrset(A_NORMAL);
  refresh();
}

Screen::Event Screen::Next(Key* key, std::string* text) {
  wint_t code = 0;
  while (true) {
    const int kind = get_wch(&code);
    if (kind == ERR) return Event::kNone;
    if (kind == KEY_CODE_YES && code == KEY_RESIZE) return Event::kResized;
    if (kind == KEY_CODE_YES ? KeyOf(code, key) : CharacterOf(code, key, text)) return Event::kKey;
  }
}

Screen::Event Screen::Wait(int milliseconds, Key* key, std::string* text) {
  Event event = Next(key, text);
  if (event != Event::kNone) return event;
  pollfd input{STDIN_FILENO, POLLIN, 0};
  const int ready = poll(&input, 1, milliseconds);
  if (ready > 0 && (input.revents & (POLLHUP | POLLERR | POLLNVAL)) != 0) return Event::kGone;
  event = Next(key, text);
  // Readable, and nothing to read: the other end is closed.
  if (event == Event::kNone && ready > 0 && poll(&input, 1, 0) > 0) return Event::kGone;
  return event;
}

}  // namespace longwire::cli::top
