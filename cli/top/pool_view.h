// What the operator looks at in longwire top --pool: hosts and the queue, as far down as he has
// scrolled. Keys go in, lines of a page come out; nothing is changed.
#pragma once

#include <string>
#include <vector>

#include "cli/top/view.h"

namespace longwire::cli::top {

class PoolView {
 public:
  void SetPool(transport::PoolFigures pool);
  // Why the last question got no answer.
  void SetProblem(std::string problem) { problem_ = std::move(problem); }

  void Press(Key key, const std::string& text = "");
  bool quit() const { return quit_; }

  // As many lines as the page is high, each as many columns as it is wide.
  std::vector<Line> Page(int width, int height);

 private:
  std::vector<Line> Body(int width) const;

  transport::PoolFigures pool_;
  bool known_ = false;
  std::string problem_;
  int first_ = 0;  // line of the body that is shown
  int rows_ = 1;   // of the body that fit
  bool quit_ = false;
};

}  // namespace longwire::cli::top
