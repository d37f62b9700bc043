// What the operator looks at and types: the order, the filter, the selected session, a question.
// Keys go in, requests to the server and lines of a page come out. It draws nothing itself.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/top/picture.h"

namespace longwire::cli::top {

enum class Key {
  kText,  // a character
  kUp,
  kDown,
  kLeft,
  kRight,
  kPageUp,
  kPageDown,
  kHome,
  kEnd,
  kEnter,
  kEscape,
  kBackspace,
  kInterrupt
};

enum class Style { kPlain, kHead, kAlarm, kTitles, kSelected, kFoot };
struct Line {
  std::string text;
  Style style = Style::kPlain;
};

class View {
 public:
  // Takes the server's figures in. `problem`: why the last question got no answer.
  void SetPicture(Picture picture);
  void SetProblem(std::string problem) { problem_ = std::move(problem); }
  // What the server said of a request.
  void Say(std::string sentence) { said_ = std::move(sentence); }

  // `text`: of kText, one character in UTF-8.
  void Press(Key key, const std::string& text = "");
  bool quit() const { return quit_; }
  // What the operator wants done, once.
  std::optional<transport::AdminRequest> TakeRequest();

  // As many lines as the page is high, each as many columns as it is wide.
  std::vector<Line> Page(int width, int height);

 private:
  enum class Mode { kTables, kFilter, kQuestion, kDevice, kHelp };
  struct Question {
    std::string text;
    transport::AdminRequest request;
  };
  void PressInTables(Key key, const std::string& text);
  void PressLetter(char letter);
  void PressInLine(Key key, const std::string& text);
  void AnswerQuestion(Key key, const std::string& text);
  void Move(int rows);
  void AskToKill();
  void AskToDrain();
  void AskForDevice();
  void CordonTyped();
  void Arrange();
  const SessionRow* Selected() const;
  std::vector<Line> HelpPage() const;
  void AddTables(int width, int height, std::vector<Line>* page);
  void AddSessions(int width, int rows, std::vector<Line>* page);
  Line Foot() const;

  Picture all_;    // as the server told it
  Picture shown_;  // filtered and sorted
  bool known_ = false;
  std::string problem_, said_;
  Mode mode_ = Mode::kTables;
  Column sorted_ = Column::kGpu;
  bool reversed_ = false;
  std::string filter_, typed_;
  uint64_t selected_ = 0;  // a session; 0: none
  size_t place_ = 0;       // its row, or where it was
  size_t first_ = 0;       // row that is shown
  size_t page_rows_ = 1;
  Question question_;
  std::optional<transport::AdminRequest> request_;
  bool quit_ = false;
};

}  // namespace longwire::cli::top
